"""The base of all rooms: the gate to Numba, threads, versioned folders, progress."""
