"""Wire surfaces over the same services. None has state of its own, and none knows another."""
