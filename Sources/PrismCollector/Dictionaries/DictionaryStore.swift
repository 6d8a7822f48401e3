import PrismPacket
import PrismProtocol

/// Keeps dictionaries. Packets that were packed with one may come for as long as their sender holds them.
protocol DictionaryStore: Sendable {
  /// The one that was made last; nil: the namespace has no dictionary.
  func newest(of namespace: NamespaceName) async throws(StoreFailure) -> KeptDictionary?

  /// nil: it is not kept, or not any more.
  func find(_ id: UInt32, of namespace: NamespaceName) async throws(StoreFailure) -> CompressionDictionary?

  /// Those with a dictionary, `countMax` at most, the newest first.
  func namespaces(countMax: Int) async throws(StoreFailure) -> [NamespaceName]

  /// At rest when it returns. Past `KeptDictionary.countMax` of a namespace the oldest are dropped.
  func keep(_ dictionary: KeptDictionary, of namespace: NamespaceName) async throws(StoreFailure)
}

/// A dictionary with its age.
struct KeptDictionary: Sendable, Equatable {
  /// Of one namespace: one is made a day at most, and a packet may be 40 days old.
  static let countMax = 41

  var dictionary: CompressionDictionary
  /// Milliseconds since 1970.
  var madeTime: Int64
}
