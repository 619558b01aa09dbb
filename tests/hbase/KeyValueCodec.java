package org.apache.hudi.org.apache.hadoop.hbase.codec;

/** The codec of cells by the name that the client in Hudi's bundle asks for, which a server of HBase does not know. */
public class KeyValueCodec extends org.apache.hadoop.hbase.codec.KeyValueCodec {}
