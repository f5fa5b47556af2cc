"""What every room stands on: the gate to Numba, threads, versioned folders, progress."""
