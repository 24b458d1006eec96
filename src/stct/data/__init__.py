"""Files in and files out: tables, embeddings, patches and whole-or-nothing outputs."""
