import PrismPacket
public import PrismProtocol

/// The result of one attempt to deliver a packet.
public struct DeliveryOutcome: Sendable, Equatable {
  /// The part of the answer that decides over the packet (docs/delivery.md, "Delivery decision"). A `status` is the
  /// receiver's own number, for people: dead letters and `prismctl status` show it.
  public enum Verdict: Sendable, Equatable {
    /// It is at rest at the receiver.
    case accepted(wasDuplicate: Bool)
    /// Something answered that did not prove to have taken the packet: a captive portal, a proxy, a server without the
    /// key.
    case noReceipt(status: Int)
    /// A refusal of this packet that the receiver did not prove to be its own (400, 410, 413, 415, 422): a proxy may have
    /// answered.
    case unprovenRefusal(status: Int, message: String)
    /// The receiver may take less of it.
    case tooLarge(status: Int, message: String)
    /// The receiver can't take something in it.
    case unacceptable(status: Int, message: String)
    /// The receiver does not know any more whether it has the packet: it forgot the ids of packets as old as this one.
    case tooOld(message: String, receiverTime: Int64? = nil)
    /// The receiver does not have the packet before this one, and took neither: 425, where that may still come, or 409.
    case outOfOrder(status: Int, cause: String, retryAfter: Duration?)
    /// A fault of configuration, here or there: no packet would get through.
    case misconfigured(status: Int, code: PacketRefusal?, message: String)
    /// The receiver does not have the dictionary that the packet is packed with.
    case unknownDictionary
    /// The answer may be to another packet.
    case unproven(status: Int)
    /// A later attempt may succeed. `status` is nil if no whole answer came; `retryAfter` is what the receiver asks for.
    case unavailable(status: Int?, cause: String, retryAfter: Duration?)
    /// This side gave up, because it is stopping.
    case cancelled
    /// It was handed to a person in a file. Its receipt comes back with them; until then it may be sent again.
    case carried
  }

  /// The answer's meaning for the packet.
  public var verdict: Verdict
  /// A byte of the packet may have reached the other side: it keeps its id and its rows until it is settled.
  public var mayHaveLeft: Bool
  /// On the wire, headers included; they count on metered networks.
  public var bytesSent: Int, bytesReceived: Int
  /// From the attempt's begin to its end.
  public var duration: Duration
  /// The round trip of the connection; nil if unknown.
  public var line: LineReading?
  /// The receiver's announcements; nil: no receiver answered, or nothing is known of it.
  public var receiver: ReceiverFeatures?
  /// The version of the remote configuration that the receiver has; nil if it names no version.
  public var configurationVersion: Int64?
  /// The number of the newest operation on records that the receiver has; nil if it names no number.
  public var recordsVersion: Int64?
  /// The store that took the packet, as a proven receipt tells it; nil: no receipt was proven.
  public var store: StoreReceipt?
  /// The receiver's answer to operations on records; nil for reports.
  public var records: RecordReceipt?

  /// Whether the receiver may have taken the packet, though its receipt did not come.
  /// - Parameter bodyBytes: of the packet; with fewer bytes on the wire it did not come whole.
  func leavesDoubt(bodyBytes: Int) -> Bool {
    guard mayHaveLeft else { return false }
    switch verdict {
    case .tooLarge, .unacceptable, .unknownDictionary: return false
    case .unprovenRefusal(status: 413, _), .unproven(status: 413): return false
    case .carried: return true
    default: return bytesSent >= bodyBytes
    }
  }

  public init(
    _ verdict: Verdict, mayHaveLeft: Bool, bytesSent: Int = 0, bytesReceived: Int = 0, duration: Duration = .zero
  ) {
    (self.verdict, self.mayHaveLeft, self.duration) = (verdict, mayHaveLeft, duration)
    (self.bytesSent, self.bytesReceived) = (bytesSent, bytesReceived)
  }
}

/// The features that a receiver announces in its answers.
public struct ReceiverFeatures: Sendable, Equatable {
  /// `Prism-Accept: zstd`
  public var takesZstd = false
  /// `Prism-Accept: columns`
  public var takesColumns = false
  /// `Prism-Dictionary`: the newest dictionary that it has for the namespace.
  public var dictionaryID: UInt32?
  /// A dictionary that it refused, whether it announced that one or not.
  var refusedDictionaryID: UInt32?
  /// `Prism-Window`: packets of one stream that it takes at a time, 1 to 64. It applies them in their order.
  public var window = 1

  /// With what an earlier answer taught.
  func after(_ former: ReceiverFeatures) -> ReceiverFeatures {
    var features = self
    features.refusedDictionaryID = former.refusedDictionaryID
    return features
  }

  func takes(_ dictionary: CompressionDictionary) -> Bool {
    takesZstd && dictionaryID != nil && dictionary.id != refusedDictionaryID
  }
}
