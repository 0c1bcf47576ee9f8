"""The contact solver beside its alternatives: problems met by other programs, iteration counts."""

import os

# One BLAS thread, set before anything loads the library: the threads of OpenBLAS wait by spinning, so
# that on a busy machine a factorisation of 160 rows took a hundred times its own CPU time.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
