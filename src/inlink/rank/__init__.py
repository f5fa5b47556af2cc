"""Link analysis, with one module per algorithm. The functions are names of :mod:`inlink`."""
