"""HFiles, version 3: the sorted key-value files of Hudi's metadata table."""
