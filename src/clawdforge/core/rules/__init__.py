"""The rules of the product, as plain functions over a transaction: no waiting, no port but the store."""
