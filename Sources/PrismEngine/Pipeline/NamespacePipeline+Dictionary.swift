import PrismConfig
import PrismPacket
import PrismProtocol

// The dictionary that a namespace's packets are packed with.
extension NamespacePipeline {
  static let dictionaryKey = "dictionary"

  /// nil: the namespace uses no dictionary, or has no dictionary yet. A packet in a file goes without: it may come long after
  /// its dictionary was dropped.
  var dictionaryInUse: CompressionDictionary? {
    settings.configuration?.dictionary == true && carryJob.carrier == nil ? dictionary.held : nil
  }

  /// A receiver answered to a packet: asks it for its dictionary, if it is another one.
  func considerDictionary(_ features: ReceiverFeatures) {
    let gates = gates(.meta)
    guard !isStopping, let configuration = settings.configuration, let seal = settings.seal(isMetered: gates.isMetered),
      dictionary.shouldAsk(features, configuration, flowRestBytes: gates.flowRestBytes, now: now)
    else { return }
    let booked = gates.isMetered ? book(DictionaryFetch.bytesMax) : nil
    begin { await $0.fetchDictionary(seal, configuration, booked: booked) }
  }

  private func fetchDictionary(
    _ seal: PacketSeal, _ configuration: NamespaceConfiguration, booked: Int?
  ) async {
    let outcome = await parts.dictionaries.ask(seal, configuration)
    if let booked { _ = book(outcome.bytes - booked) }
    dictionary.answered(outcome.dictionary)
    if let came = outcome.dictionary { notes[Self.dictionaryKey] = .some(came.bytes) }
  }
}
