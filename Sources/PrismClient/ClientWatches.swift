import PrismProtocol
import Synchronization

/// The watches of one client: one connection for each namespace's switches and for each table that it follows.
final class ClientWatches: Sendable {
  private struct Feeds {
    var settings: [NamespaceName: SettingsFeed] = [:]
    var tables: [NamespaceName: [RecordTableName: WatchFeed<RecordChange>]] = [:]
  }

  private let socket: String
  private let feeds = Mutex(Feeds())

  init(socket: String) { self.socket = socket }

  func settings(of namespace: NamespaceName) -> SettingsFeed {
    feeds.withLock { feeds in
      if let feed = feeds.settings[namespace] { return feed }
      let feed = SettingsFeed(
        socket: socket, watch: ["namespace": .string(namespace.text), "configuration": true])
      feeds.settings[namespace] = feed
      return feed
    }
  }

  func changes(of table: RecordTableName, in namespace: NamespaceName) -> WatchFeed<RecordChange> {
    feeds.withLock { feeds in
      if let feed = feeds.tables[namespace]?[table] { return feed }
      let feed = WatchFeed<RecordChange>(
        socket: socket, watch: ["namespace": .string(namespace.text), "table": .string(table.text)])
      feeds.tables[namespace, default: [:]][table] = feed
      return feed
    }
  }

  /// Ends all connections and sequences. Call it once, at the end of the client.
  func stop() {
    let feeds = feeds.withLock { $0 }
    for feed in feeds.settings.values { feed.stop() }
    for feed in feeds.tables.values.flatMap(\.values) { feed.stop() }
  }
}
