/// A request of another input that the ingest server has read whole: from one of its HTTP paths, or a message of a protocol
/// of its own.
public struct InputRequest: Sendable {
  /// The values of `Content-Encoding` that are taken, beside `identity`.
  public enum Packing: String, Sendable, CaseIterable { case gzip, zstd }

  /// The path of an HTTP request; empty for a message.
  public var path: String
  /// The header `Content-Type`; empty if it was left out.
  public var contentType: String
  /// The compression of the body; nil: it is as it is.
  public var packing: Packing?
  /// The body, or the message, as it came.
  public var body: [UInt8]
  /// Bytes of memory that are reserved for all that the request becomes until it is answered.
  public var reservedBytes: Int
  /// The largest body, unpacked, that the reserved memory is enough for. Small ones become eight times as large; the reports of
  /// large ones are made in parts of some 2 MiB.
  public var roomBytes: Int { max(reservedBytes / 8, reservedBytes - 2 * 1024 * 1024) }
  /// Whether the sender has the answer.
  public var receipt = AnswerReceipt()

  /// A request with these parts.
  public init(path: String = "", contentType: String = "", packing: Packing? = nil, body: [UInt8], reservedBytes: Int) {
    (self.path, self.contentType, self.packing) = (path, contentType, packing)
    (self.body, self.reservedBytes) = (body, reservedBytes)
  }
}

/// The answer to an `InputRequest`.
public struct InputAnswer: Sendable, Equatable {
  /// The status of an HTTP answer; for a message below 400 if it was taken.
  public var status: Int
  /// The header `Content-Type`.
  public var contentType: String
  /// The body, or the bytes that answer a message.
  public var body: [UInt8]
  /// The header `Retry-After`, in seconds; nil: trying again unchanged is no use.
  public var retrySeconds: Int?
  /// The connection ends after this answer.
  public var mustClose: Bool

  /// An answer with these parts.
  public init(
    status: Int = 200, contentType: String = "", body: [UInt8], retrySeconds: Int? = nil, mustClose: Bool = false
  ) {
    (self.status, self.contentType, self.body) = (status, contentType, body)
    (self.retrySeconds, self.mustClose) = (retrySeconds, mustClose)
  }
}
