import PrismBase
import PrismConfig
import PrismSQL

// The stores that the settings name: all on PostgreSQL, or all in the state folder.
extension CollectorOptions {
  func packetStore(_ time: any TimeSource, _ log: Logger) throws -> any PacketStore {
    let retention = Retention(
      days: self.retentionDays, rules: self.retention, outputs: self.outputs.map(\.name),
      outputLagBytes: Int64(self.outputLagBytes),
      onLag: self.onLag)
    if let target = store {
      if let warning = target.tlsWarning { log.warning(warning) }
      var store = PostgreSQLPacketStore.Options(target: target, log: log)
      (store.retention, store.quotas) = (retention, Quotas(self.limits))
      (store.commitDeadline, store.time, store.lock) = (self.commitDeadline, time, try StateLock(folder: state))
      return try PostgreSQLPacketStore(store)
    }
    var store = SQLitePacketStore.Options(folder: state, log: log)
    (store.retention, store.quotas, store.time) = (retention, Quotas(self.limits), time)
    return try SQLitePacketStore(store)
  }

  /// Reads the store without opening it for packets.
  var storeReader: StoreReader {
    if let store { return StoreReader(PostgreSQLSetup(target: store, deadline: .seconds(300))) }
    return StoreReader(SQLiteSource(path: DatabaseFiles(folder: state).path))
  }

  /// Facts of the fleet beside its packets.
  package var fleet: FleetDatabase { store.map { .server($0) } ?? .folder(state) }
}
