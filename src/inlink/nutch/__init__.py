"""Read and write the files of Apache Nutch, and do what its link analysis programs do."""
