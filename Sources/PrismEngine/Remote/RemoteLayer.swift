import PrismConfig
import PrismProtocol

/// The layer of remote configuration: the server's documents, without the parts that were taken back after their
/// probation.
struct RemoteLayer: Sendable, Equatable {
  /// A namespace whose packets were accepted before must get one accepted under what is new.
  struct Trial: Sendable, Equatable {
    /// The configuration that is taken back; nil if there was no configuration of the namespace.
    var previous: RemoteNamespace?
    /// How long it has tried in vain.
    var tried: Duration = .zero
  }

  /// The server's configuration of a namespace failed its probation.
  struct Return: Sendable, Equatable {
    var failed: RemoteNamespace?
    var previous: RemoteNamespace?
  }

  /// As the server has it.
  var offered: [NamespaceName: RemoteNamespace] = [:]
  /// The server's count; nil: everything must be asked for.
  var updateTime: Int64?
  /// The store that gave the count; nil: the server names no store.
  var store: String?
  /// The highest that was taken; a signed document's must not be below it.
  var version: Int64?
  /// Until when the last signed answer may be taken: after it, an answer is missing or held back. Milliseconds since 1970.
  var validUntil: Int64?
  /// The latest `issueTime` of a signed answer, at most this machine's clock at that time. A clock that is set back
  /// does not make an expired answer valid, and neither a signer's nor an attacker's clock alone moves it ahead.
  var timeFloor: Int64?
  var trials: [NamespaceName: Trial] = [:]
  var returned: [NamespaceName: Return] = [:]

  /// The configuration to put in force, by namespace.
  var entries: [NamespaceName: RemoteNamespace] {
    var entries = offered
    for (name, back) in returned { entries[name] = back.previous }
    return entries
  }

  /// The number with which a packet's answer is compared.
  var number: Int64? { version ?? updateTime }

  /// Removes the configuration of all namespaces. The knowledge of the signer stays.
  var emptied: RemoteLayer { RemoteLayer(version: version, validUntil: validUntil, timeFloor: timeFloor) }

  mutating func forgetSigner() { (version, validUntil, timeFloor) = (nil, nil, nil) }

  /// - Parameter document: signed, and taken.
  mutating func noteTimes(of document: RemoteDocument, now: Int64) {
    validUntil = document.expireTime
    if let issueTime = document.issueTime { timeFloor = max(timeFloor ?? 0, min(issueTime, now)) }
  }

  /// Applies `document`. A configuration that was taken back stays so until the server sends another one for that
  /// namespace.
  /// - Parameter isWhole: it answers the question for everything. Namespaces that it does not name go only if it is of the
  ///   store that gave the count, or if no count is known: another store never had them.
  func with(_ document: RemoteDocument, isWhole: Bool) -> RemoteLayer {
    var result = self
    if isWhole, updateTime == nil || store == document.store { result.offered = [:] }
    for entry in document.namespaces { result.offered[entry.name] = entry.isRemoved ? nil : entry }
    result.returned = returned.filter { result.offered[$0.key] == $0.value.failed }
    (result.updateTime, result.store) = (document.updateTime, isWhole ? document.store : document.store ?? store)
    result.version = document.version ?? version
    return result
  }

  /// The namespaces of `names` begin their probation; those that are as before, or not there any more, end it.
  /// - Parameter before: in force until now.
  mutating func beginTrials(_ names: Set<NamespaceName>, before: RemoteLayer) {
    let (old, new) = (before.entries, entries)
    for name in names {
      let previous = before.trials[name].map(\.previous) ?? old[name]
      trials[name] = previous == new[name] ? nil : Trial(previous: previous)
    }
  }

  mutating func takeBack(_ names: [NamespaceName]) {
    for name in names {
      returned[name] = Return(failed: offered[name], previous: trials[name]?.previous)
      trials[name] = nil
    }
  }
}
