"""What next: policies, politeness, revisit, live re-ranking, explanation."""
