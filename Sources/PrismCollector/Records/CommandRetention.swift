import PrismBase
import PrismProtocol

/// Deletes commands of which no news comes any more (docs/records.md, "Sending commands").
///
/// A command expires within 30 days from its making. So one that did not change for `days` was over for long: no device can begin
/// it any more.
struct CommandRetention {
  /// Days from the last change of a command: its making, or an answer of its device.
  static let days: Int64 = 60
  /// Of one transaction.
  private static let pageMax = 500

  private var lookedAt: Duration?
  /// Of the look before, in milliseconds since 1970: no clock that is wrong for less than a day deletes anything.
  private var agreedBefore: Int64?

  /// Looks once a day of its service, and deletes only what was too old at the look before, too. - Returns: whether more is due at once.
  mutating func delete(from store: any RecordStore, _ time: any TimeSource, _ log: Logger) async -> Bool {
    if let lookedAt, time.uptime - lookedAt < .seconds(86_400) { return false }
    do {
      let before = time.unixMilliseconds - Self.days * 86_400_000
      guard let agreed = agreedBefore else {
        (agreedBefore, lookedAt) = (before, time.uptime)
        return false
      }
      let found = try await store.commands(changedBefore: min(agreed, before), limit: Self.pageMax)
      for (place, commands) in Dictionary(grouping: found, by: \.place) {
        let deletions = commands.map { RecordChange(id: $0.id, action: .delete) }
        _ = try await store.change(deletions, of: place, if: .always)
      }
      if !found.isEmpty { log.info("old commands were deleted", ["commands": String(found.count)]) }
      log.faultEnded("collector.commands", "old commands are deleted again")
      if found.count == Self.pageMax { return true }
      (agreedBefore, lookedAt) = (before, time.uptime)
    } catch {
      log.fault("collector.commands", "old commands can't be deleted; tried again", ["cause": "\(error)"])
    }
    return false
  }
}

struct CommandPlace: Sendable, Equatable {
  var place: RecordPlace
  var id: RecordID

  /// nil for names that no command has any more.
  init?(namespace: String, device: String, id: String) {
    guard let namespace = NamespaceName(namespace), let id = RecordID(id) else { return nil }
    (place, self.id) = (RecordPlace(namespace: namespace, table: .command, device: device), id)
  }
}
