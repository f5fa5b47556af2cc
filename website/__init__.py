"""What `make docs` needs to build the website from the pages in docs."""
