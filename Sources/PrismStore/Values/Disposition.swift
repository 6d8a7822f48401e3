public import PrismProtocol

/// The result for a claimed packet (docs/delivery.md, "Delivery decision").
public enum Disposition: Sendable, Equatable {
  /// Accepted by its receipt: the rows are deleted, its id becomes the next `Prism-Depends-On`.
  case delivered(PacketID, receipt: Receipt)
  /// Its rows become two packets, the first half and the second. They take its place in the order.
  case split(PacketID, first: PacketID, second: PacketID)
  /// Its rows become dead letters.
  case dead(PacketID, cause: DeadCause)
  /// No byte of it can have left: its rows wait again.
  case released(PacketID)
  /// Something on the way does not let it through: its rows wait, and no claim finds them until
  /// `ReportStore.endSetBacks`. A start ends it, too.
  case setBack(PacketID)

  /// The same with the answer to operations on records.
  public func with(_ records: RecordReceipt?) -> Self {
    guard case .delivered(let id, var receipt) = self, let records else { return self }
    receipt.records = records
    return .delivered(id, receipt: receipt)
  }

  /// How a packet was accepted.
  public struct Receipt: Sendable, Equatable {
    /// The time of the answer, in milliseconds since 1970.
    public var unixMilliseconds: Int64
    /// Attempts, the last one among them.
    public var attempts: Int
    /// Whether the collector had the packet already.
    public var wasDuplicate: Bool
    /// The answer to operations on records; nil for reports.
    public var records: RecordReceipt?
    public init(unixMilliseconds: Int64, attempts: Int, wasDuplicate: Bool) {
      (self.unixMilliseconds, self.attempts, self.wasDuplicate) = (unixMilliseconds, attempts, wasDuplicate)
    }
  }

  /// Why a packet was refused for good.
  public struct DeadCause: Sendable, Equatable {
    /// The answer's status.
    public var status: Int
    /// The collector's own words, cut at 512 bytes.
    public var message: String
    /// The time of the answer, in milliseconds since 1970.
    public var unixMilliseconds: Int64
    /// Attempts, the last one among them.
    public var attempts: Int
    public init(status: Int, message: String, unixMilliseconds: Int64, attempts: Int) {
      (self.status, self.message) = (status, message)
      (self.unixMilliseconds, self.attempts) = (unixMilliseconds, attempts)
    }
  }
}

/// A small value that is kept for a namespace (`flow`, `retry.meta`, …), written in the same transaction as the rows
/// that it describes.
public struct Note: Sendable, Equatable {
  /// The namespace that it belongs to.
  public var namespace: NamespaceName
  /// The name of the note in its namespace.
  public var key: String
  /// The new value; nil removes the note.
  public var value: [UInt8]?
  public init(namespace: NamespaceName, key: String, value: [UInt8]?) {
    (self.namespace, self.key, self.value) = (namespace, key, value)
  }
}

/// One turn of the upload: everything that one commit does for it.
public struct UploadCommit: Sendable {
  /// The results of packets that were sent; carried out first.
  public var dispositions: [Disposition] = []
  /// The packets to make then.
  public var claims: [Claim] = []
  /// The notes to write.
  public var notes: [Note] = []
  public init(dispositions: [Disposition] = [], claims: [Claim] = [], notes: [Note] = []) {
    (self.dispositions, self.claims, self.notes) = (dispositions, claims, notes)
  }
}
