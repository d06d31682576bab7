-- What is wished may need more words, and so may the answer to it.
ALTER TABLE wishes ADD COLUMN body word;
