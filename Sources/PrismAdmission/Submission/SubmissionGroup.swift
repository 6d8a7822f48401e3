public import PrismProtocol

/// Reports that one commit takes together: all that an input answers at once, and the note of its place in its source.
public struct SubmissionGroup: Sendable {
  /// A place in a source, as the input will find it again (`SubmissionSink.note`).
  public struct Note: Sendable, Equatable {
    /// Any namespace that the input reports to.
    public var namespace: NamespaceName
    /// Begins with the name of the input.
    public var key: String
    /// At most `BatchNote.valueBytesMax` bytes.
    public var value: [UInt8]

    /// It is written only together with a report.
    public var needsReports = false

    /// - Parameter namespace: any one that the input reports to.
    /// - Parameter key: of a small, fixed number of keys, at most `BatchNote.keyBytesMax` bytes; begin it with the
    ///   input's name.
    /// - Parameter value: at most `BatchNote.valueBytesMax` bytes.
    public init(namespace: NamespaceName, key: String, value: [UInt8]) {
      (self.namespace, self.key, self.value) = (namespace, key, value)
    }
  }

  /// Answered in this order.
  public var submissions: [Submission]
  /// Stored in the transaction of the reports (`BatchNote` says when); nil if the input has no place.
  public var note: Note?
  /// The ids of the reports, where all that have one are of one run; nil: each is known by its own id. An input that
  /// hands some of them over again names the run again.
  public var run: ReportIDRun?
  /// The user whose share of `ingest.memoryMByte` and of the commits the group takes.
  public let userID: UInt32

  /// - Parameter userID: the user that is charged.
  public init(_ submissions: [Submission], note: Note? = nil, run: ReportIDRun? = nil, userID: UInt32) {
    (self.submissions, self.note, self.run, self.userID) = (submissions, note, run, userID)
  }

  /// Bytes that it holds in memory.
  public var bytes: Int { submissions.reduce(0) { $0 + $1.bytes } }
  /// The most that it and its batches hold until they are committed.
  public var memoryBytes: Int { 2 * bytes }
}
