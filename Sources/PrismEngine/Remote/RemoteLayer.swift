import PrismConfig
import PrismProtocol

/// What remote configuration comes to: what the server says, and what of it was taken back after its probation.
struct RemoteLayer: Sendable, Equatable {
  /// A namespace whose packets were accepted before must get one accepted under what is new.
  struct Trial: Sendable, Equatable {
    /// What is taken back; nil: nothing was said of the namespace.
    var previous: RemoteNamespace?
    /// How long it has tried in vain.
    var tried: Duration = .zero
  }

  /// What the server says of a namespace did not prove itself.
  struct Return: Sendable, Equatable {
    var failed: RemoteNamespace?
    var previous: RemoteNamespace?
  }

  /// As the server has it.
  var offered: [NamespaceName: RemoteNamespace] = [:]
  /// The server's count; nil: everything must be asked for.
  var updateTime: Int64?
  /// The highest that was taken; a signed document's must not be below it.
  var version: Int64?
  var trials: [NamespaceName: Trial] = [:]
  var returned: [NamespaceName: Return] = [:]

  /// What is to be in force, by namespace.
  var entries: [NamespaceName: RemoteNamespace] {
    var entries = offered
    for (name, back) in returned { entries[name] = back.previous }
    return entries
  }

  /// What a packet's answer announces is held against this.
  var number: Int64? { version ?? updateTime }

  /// With what `document` says. What was taken back stays so until the server says something else of that namespace.
  /// - Parameter isWhole: it answers the question for everything.
  func with(_ document: RemoteDocument, isWhole: Bool) -> RemoteLayer {
    var result = self
    if isWhole { result.offered = [:] }
    for entry in document.namespaces { result.offered[entry.name] = entry.isRemoved ? nil : entry }
    result.returned = returned.filter { result.offered[$0.key] == $0.value.failed }
    result.updateTime = document.updateTime
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
