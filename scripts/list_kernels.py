"""Print the instruction sets of this machine except the fastest, which is the default."""

from dcme_w2v._core.models import has_kernels
from dcme_w2v.numeric.core import INSTRUCTION_SETS

print(*[name for name in INSTRUCTION_SETS if has_kernels(name)][:-1])
