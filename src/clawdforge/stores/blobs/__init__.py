"""Where pieces of files are put that every node can have: in the database, in a folder, or in a bucket."""
