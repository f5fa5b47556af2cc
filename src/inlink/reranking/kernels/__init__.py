"""The loops of live rankings."""
