"""Where the view learns which files a table has, and what of that it keeps."""
