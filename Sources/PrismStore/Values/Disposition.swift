public import PrismProtocol

/// What becomes of a claimed packet (docs/delivery.md, "Delivery decision").
public enum Disposition: Sendable, Equatable {
  /// Accepted by its receipt: the rows are deleted, its id becomes the next `Prism-Depends-On`.
  case delivered(PacketID, receipt: Receipt)
  /// Its rows become two packets, the first half and the second, next in order where this one stood.
  case split(PacketID, first: PacketID, second: PacketID)
  /// Its rows become dead letters.
  case dead(PacketID, cause: DeadCause)
  /// No byte of it can have left: its rows wait again.
  case released(PacketID)

  public struct Receipt: Sendable, Equatable {
    public var unixMilliseconds: Int64
    public var attempts: Int
    public var wasDuplicate: Bool
    public init(unixMilliseconds: Int64, attempts: Int, wasDuplicate: Bool) {
      (self.unixMilliseconds, self.attempts, self.wasDuplicate) = (unixMilliseconds, attempts, wasDuplicate)
    }
  }

  public struct DeadCause: Sendable, Equatable {
    /// The answer's status.
    public var status: Int
    /// The collector's own words, cut at 512 bytes.
    public var message: String
    public var unixMilliseconds: Int64
    public var attempts: Int
    public init(status: Int, message: String, unixMilliseconds: Int64, attempts: Int) {
      (self.status, self.message) = (status, message)
      (self.unixMilliseconds, self.attempts) = (unixMilliseconds, attempts)
    }
  }
}

/// A small value that is kept for a namespace (`flow`, `retry.meta`, …), written in the same transaction as what it
/// tells of. `value` nil removes it.
public struct Note: Sendable, Equatable {
  public var namespace: NamespaceName
  public var key: String
  public var value: [UInt8]?
  public init(namespace: NamespaceName, key: String, value: [UInt8]?) {
    (self.namespace, self.key, self.value) = (namespace, key, value)
  }
}

/// One turn of the upload: everything that one commit does for it.
public struct UploadCommit: Sendable {
  public var dispositions: [Disposition] = []
  public var claims: [Claim] = []
  public var notes: [Note] = []
  public init(dispositions: [Disposition] = [], claims: [Claim] = [], notes: [Note] = []) {
    (self.dispositions, self.claims, self.notes) = (dispositions, claims, notes)
  }
}
