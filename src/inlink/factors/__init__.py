"""Factors of a page's priority beside the policy: trust, an earlier ranking, distrust, spam mass, near-duplicates."""
