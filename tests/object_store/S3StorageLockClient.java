package org.apache.hudi.aws.transaction.lock;

import java.io.ByteArrayInputStream;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.util.Properties;
import org.apache.hudi.client.transaction.lock.StorageLockClient;
import org.apache.hudi.client.transaction.lock.models.LockGetResult;
import org.apache.hudi.client.transaction.lock.models.LockUpsertResult;
import org.apache.hudi.client.transaction.lock.models.StorageLockData;
import org.apache.hudi.client.transaction.lock.models.StorageLockFile;
import org.apache.hudi.common.util.Option;
import org.apache.hudi.common.util.collection.Pair;

/**
 * Stands in for the S3 client of Hudi's StorageBasedLockProvider, which is in no Maven repository for 1.2: the protocol is Hudi's, the
 * requests are these. It names a key and signs nothing, so it is for servers that look at no keys. The write's option lakehouse.test.store
 * names the server.
 */
public class S3StorageLockClient implements StorageLockClient {
  private static final String KEY =
      "AWS4-HMAC-SHA256 Credential=any/20260101/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=none";
  private final HttpClient client = HttpClient.newHttpClient();
  private final URI lock;

  public S3StorageLockClient(String owner, String lockFile, Properties properties) {
    Pair<String, String> place = StorageLockClient.parseBucketAndPath(lockFile);
    lock = URI.create(properties.getProperty("lakehouse.test.store") + "/" + place.getLeft() + "/" + place.getRight());
  }

  @Override
  public Pair<LockUpsertResult, Option<StorageLockFile>> tryUpsertLockFile(StorageLockData data, Option<StorageLockFile> previous) {
    HttpRequest.Builder put = asked().PUT(HttpRequest.BodyPublishers.ofByteArray(StorageLockFile.toByteArray(data)));
    if (previous.isPresent()) {
      put.header("If-Match", previous.get().getVersionId());
    } else {
      put.header("If-None-Match", "*");
    }
    HttpResponse<byte[]> answer = send(put.build());
    int status = answer == null ? 0 : answer.statusCode();
    if (status == 200) {
      return Pair.of(LockUpsertResult.SUCCESS, Option.of(new StorageLockFile(data, tag(answer))));
    }
    return Pair.of(status == 412 || status == 409 ? LockUpsertResult.ACQUIRED_BY_OTHERS : LockUpsertResult.UNKNOWN_ERROR, Option.empty());
  }

  @Override
  public Pair<LockGetResult, Option<StorageLockFile>> readCurrentLockFile() {
    HttpResponse<byte[]> answer = send(asked().build());
    int status = answer == null ? 0 : answer.statusCode();
    if (status == 200) {
      StorageLockFile found = StorageLockFile.createFromStream(new ByteArrayInputStream(answer.body()), tag(answer));
      return Pair.of(LockGetResult.SUCCESS, Option.of(found));
    }
    return Pair.of(status == 404 ? LockGetResult.NOT_EXISTS : LockGetResult.UNKNOWN_ERROR, Option.empty());
  }

  /** Settings of the audit of locks, of which there are none. */
  @Override
  public Option<String> readObject(String path, boolean checkExistsFirst) {
    return Option.empty();
  }

  @Override
  public boolean writeObject(String path, String content) {
    throw new UnsupportedOperationException("nothing but the lock is written here: " + path);
  }

  @Override
  public void close() {}

  private HttpRequest.Builder asked() {
    return HttpRequest.newBuilder(lock).header("Authorization", KEY);
  }

  private static String tag(HttpResponse<byte[]> answer) {
    return answer.headers().firstValue("ETag").orElseThrow();
  }

  /** Null where there was no answer. */
  private HttpResponse<byte[]> send(HttpRequest request) {
    try {
      return client.send(request, HttpResponse.BodyHandlers.ofByteArray());
    } catch (java.io.IOException error) {
      return null;
    } catch (InterruptedException error) {
      Thread.currentThread().interrupt();
      return null;
    }
  }
}
