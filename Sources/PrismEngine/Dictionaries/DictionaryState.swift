import PrismConfig
import PrismPacket

/// The dictionary of a namespace, and when its receiver is asked for another one (docs/packet.md, "Dictionaries"). A value:
/// all times are on the uptime clock.
struct DictionaryState: Sendable, Equatable {
  /// Between two questions. A receiver that announces a dictionary is asked sooner.
  static let (interval, newsInterval): (Duration, Duration) = (.seconds(3600), .seconds(60))

  /// The one that packets are packed with.
  private(set) var held: CompressionDictionary?
  private var asked: Question?
  private struct Question: Equatable { var at: Duration, announced: UInt32? }
  private var isAsking = false

  init() {}

  /// - Parameter note: the bytes that an earlier run noted; others are as good as no dictionary.
  init(note: [UInt8]) { held = CompressionDictionary(note) }

  /// A packet was answered.
  /// - Parameter flowRestBytes: the rest of the budget on a metered network, of which a dictionary must take little.
  /// - Returns: whether to ask for a dictionary now. Then `answered` must follow.
  mutating func shouldAsk(
    _ features: ReceiverFeatures, _ configuration: NamespaceConfiguration, flowRestBytes: Int?, now: Duration
  ) -> Bool {
    let isAffordable = flowRestBytes.map { $0 >= 8 * DictionaryFetch.bytesMax } ?? true
    guard configuration.dictionary, features.takesZstd, isAffordable else { return false }
    return shouldAsk(announced: features.dictionaryID, now: now)
  }

  /// - Parameter announced: the dictionary that the receiver has; nil: it names no dictionary.
  mutating func shouldAsk(announced: UInt32?, now: Duration) -> Bool {
    guard !isAsking, announced == nil || announced != held?.id else { return false }
    if let asked {
      let isNews = announced != nil && announced != asked.announced
      guard now - asked.at >= (isNews ? Self.newsInterval : Self.interval) else { return false }
    }
    (isAsking, asked) = (true, Question(at: now, announced: announced))
    return true
  }

  /// - Parameter dictionary: nil: no dictionary came; the one that is held stays.
  mutating func answered(_ dictionary: CompressionDictionary?) {
    isAsking = false
    held = dictionary ?? held
  }
}
