"""Print the instruction sets of this machine except the fastest, which is the default."""

from dcme_w2v._core.models import KERNELS

print(*KERNELS[1:])
