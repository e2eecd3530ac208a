"""The sandbox of a question: `host` opens it, `inside` runs in it, `protocol` joins the two."""
