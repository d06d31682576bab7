"""The records that services, stores and drivers pass to each other. No behaviour beyond their own values."""
