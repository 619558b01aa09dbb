import java.io.File;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hbase.HBaseConfiguration;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.ConnectionFactory;
import org.apache.hadoop.hbase.master.HMaster;
import org.apache.hadoop.hbase.thrift.ThriftServer;

/** ZooKeeper, master, region server and Thrift server in one JVM: the arguments are the port of the Thrift server and a file that is made when all is up. */
public class LocalHBase {
  public static void main(String[] args) throws Exception {
    Thread master = new Thread(() -> HMaster.main(new String[] {"start"}));
    master.setDaemon(true);
    master.start();
    Configuration conf = HBaseConfiguration.create();
    while (true) {
      try (Connection connection = ConnectionFactory.createConnection(conf); Admin admin = connection.getAdmin()) {
        if (!admin.getClusterMetrics().getLiveServerMetrics().isEmpty() && admin.listTableNames() != null) {
          break;
        }
      } catch (Exception error) {
        System.err.println("not yet: " + error);
      }
      Thread.sleep(500);
    }
    new File(args[1]).createNewFile();
    new ThriftServer(conf).run(new String[] {"-p", args[0], "-b", "127.0.0.1", "start"});
  }
}
