/// A small value that is stored in the transaction of the batches that it speaks of: an input's place in its source.
///
/// It is written only if every row of its batches is stored, known already, or refused for good. If a row is refused with
/// a time to try again, the input hands the same reports over once more, and finds its old place until then.
public struct BatchNote: Sendable, Equatable {
  /// The longest key, in bytes.
  public static let keyBytesMax = 64
  /// The longest value, in bytes.
  public static let valueBytesMax = 1024

  /// Any namespace that the input reports to.
  public let namespace: NamespaceName
  /// Begins with the name of the input.
  public let key: String
  /// The place, in the form of the input.
  public let value: [UInt8]
  /// It is written only together with a report.
  public let needsReports: Bool
  /// Events that are added to the sessions of the namespace, in place of a value.
  public private(set) var sessions: [SessionEvent]?
  /// Indices of the batches that it speaks of, in the list that it is handed over with; empty: it is written in any case.
  public var batches: Range<Int>

  /// - Parameter key: of a small, fixed number of keys, at most `keyBytesMax` bytes.
  /// - Parameter value: at most `valueBytesMax` bytes.
  public init(
    namespace: NamespaceName, key: String, value: [UInt8], needsReports: Bool = false, batches: Range<Int> = 0..<0
  ) {
    precondition(key.utf8.count <= Self.keyBytesMax, "a note's key has at most \(Self.keyBytesMax) bytes")
    precondition(value.count <= Self.valueBytesMax, "a note has at most \(Self.valueBytesMax) bytes")
    (self.namespace, self.key, self.value) = (namespace, key, value)
    (self.needsReports, self.batches) = (needsReports, batches)
  }

  /// Adds to the sessions of a namespace (`AppHealth`).
  /// - Parameter mark: the same one again is added once, so that events whose commit has no known outcome may come again.
  public init(_ sessions: [SessionEvent], mark: String, to namespace: NamespaceName) {
    self.init(namespace: namespace, key: AppHealth.noteKey, value: Array(mark.utf8))
    self.sessions = sessions
  }

  /// Whether it may be written after `outcomes`, those of the whole list.
  public func isDue(after outcomes: [BatchOutcome]) -> Bool {
    for index in batches {
      for case (_, .refused(let refusal)) in outcomes[index].exceptions where refusal.retryMilliseconds != nil {
        return false
      }
    }
    return true
  }
}
