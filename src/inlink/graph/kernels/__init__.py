"""The loops of the graph room."""
