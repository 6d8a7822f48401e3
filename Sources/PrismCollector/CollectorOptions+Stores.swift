import PrismBase
import PrismConfig

// The stores that the settings name: all on PostgreSQL, or all in the state folder.
extension CollectorOptions {
  func packetStore(_ time: any TimeSource, _ log: Logger) throws -> any PacketStore {
    if let target = store {
      if let warning = target.tlsWarning { log.warning(warning) }
      var store = PostgreSQLPacketStore.Options(target: target, log: log)
      (store.retentionDays, store.commitDeadline, store.time) = (self.retentionDays, self.commitDeadline, time)
      (store.outputs, store.outputLagBytes, store.onLag) = (
        self.outputs.map(\.name), Int64(self.outputLagBytes), self.onLag
      )
      return try PostgreSQLPacketStore(store)
    }
    var store = SQLitePacketStore.Options(folder: state, log: log)
    (store.retentionDays, store.time) = (self.retentionDays, time)
    (store.outputs, store.outputLagBytes) = (self.outputs.map(\.name), Int64(self.outputLagBytes))
    store.onLag = self.onLag
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
