"""Print the instruction sets that this machine supports, without the default (the fastest)."""

from dcme_w2v._core.models import KERNELS

print(*KERNELS[1:])
