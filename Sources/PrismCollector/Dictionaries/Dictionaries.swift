import PrismBase
import PrismPacket
import PrismProtocol
import Synchronization

/// Dictionaries of the namespaces whose devices ask for them (docs/packet.md, "Dictionaries"). Samples are kept in memory:
/// a restart begins to collect again. Replicas share the store, and each makes dictionaries of what came to it.
final class Dictionaries: Sendable {
  /// Namespaces that are looked after: all samples together take 32 MiB at most.
  static let namespacesMax = 16
  /// The samples of a namespace's first dictionary. Later ones are made of all that is kept.
  static let firstBytes = 512 * 1024
  /// A namespace gets a new dictionary after it at most.
  static let renewalMilliseconds: Int64 = 24 * 3600 * 1000
  /// Dictionaries that are at hand for packets that name them.
  private static let openMax = 32
  /// Devices of which each piece of a dictionary is known, where each device has its own key.
  static let devicesMin = 3

  private struct Place: Hashable {
    var namespace: NamespaceName
    var id: UInt32
  }

  private struct Served {
    var samples = DictionarySamples()
    var newest: KeptDictionary?
    /// When a dictionary was made, or samples gave no better one.
    var triedTime: Int64?
  }

  private struct State {
    var known = KnownNamespaces()
    /// The store was asked for the namespaces that have dictionaries.
    var isRead = false
    var served: [NamespaceName: Served] = [:]
    var open: [Place: CompressionDictionary] = [:]
  }

  private let store: DictionaryStore
  private let time: any TimeSource
  private let log: Logger
  private let training = DictionaryTraining()
  private let state = Mutex(State())

  init(_ store: DictionaryStore, time: any TimeSource, log: Logger) {
    (self.store, self.time, self.log) = (store, time, log)
  }

  // MARK: Packets

  /// The dictionary that a packet of this namespace names. - Returns: nil: it is not known, or not any more.
  /// - Throws: 503 if the store does not answer.
  func dictionary(_ id: UInt32, of namespace: NamespaceName) async throws(CollectorRefusal) -> CompressionDictionary? {
    let place = Place(namespace: namespace, id: id)
    if let open = state.withLock({ $0.open[place] }) { return open }
    guard try await isKnown(namespace) else { return nil }
    do throws(StoreFailure) {
      guard let found = try await store.find(id, of: namespace) else { return nil }
      state.withLock { state in
        if state.open.count >= Self.openMax { state.open = [:] }
        state.open[place] = found
      }
      return found
    } catch { throw Self.unavailable }
  }

  /// Takes samples from a packet that its key proved.
  func offer(_ block: MetaBlock, from sender: PacketContext, derivesKeys: Bool) {
    state.withLock { state in
      let namespace = sender.namespace
      if state.known.addProven(namespace) { Self.serve(namespace, &state) }
      guard state.served[namespace]?.samples.isFull == false else { return }
      state.served[namespace]?.samples.add(
        block, from: sender.deviceID, devicesMin: derivesKeys ? Self.devicesMin : 1)
    }
  }

  /// The id that answers to packets of the namespace name; nil: there is no dictionary, or no device asked.
  func announced(of namespace: NamespaceName) -> UInt32? {
    state.withLock { $0.served[namespace]?.newest?.dictionary.id }
  }

  // MARK: Questions

  /// The newest dictionary, and from now on the namespace is looked after. One of which no packet came is looked after
  /// with its first packet: a question proves nothing.
  /// - Returns: nil: there is no dictionary yet.
  /// - Throws: 429 for a namespace past the most that are looked after, 503 if the store does not answer.
  func newest(of namespace: NamespaceName) async throws(CollectorRefusal) -> CompressionDictionary? {
    guard try await isKnown(namespace) else {
      state.withLock { $0.known.addAsked(namespace) }
      return nil
    }
    guard state.withLock({ Self.serve(namespace, &$0) }) else {
      throw CollectorRefusal(
        429, "dictionaries are made for \(Self.namespacesMax) namespaces at most", retryAfterSeconds: 24 * 3600)
    }
    do throws(StoreFailure) { return try await refresh(namespace)?.dictionary } catch { throw Self.unavailable }
  }

  /// - Returns: false: as many as can be are looked after, and the namespace is not among them.
  @discardableResult private static func serve(_ namespace: NamespaceName, _ state: inout State) -> Bool {
    if state.served[namespace] == nil, state.served.count < namespacesMax { state.served[namespace] = Served() }
    return state.served[namespace] != nil
  }

  /// Whether a packet of the namespace was proved by its key, to this process or to one that kept a dictionary.
  private func isKnown(_ namespace: NamespaceName) async throws(CollectorRefusal) -> Bool {
    if let isProven = state.withLock({ $0.isRead ? $0.known.isProven(namespace) : nil }) { return isProven }
    let kept: [NamespaceName]
    do throws(StoreFailure) { kept = try await store.namespaces(countMax: KnownNamespaces.provenMax) } catch {
      throw Self.unavailable
    }
    return state.withLock { state in
      for namespace in kept { state.known.addProven(namespace) }
      state.isRead = true
      return state.known.isProven(namespace)
    }
  }

  private static let unavailable = CollectorRefusal(
    503, "the store of dictionaries does not answer; try again", retryAfterSeconds: 60)

  // MARK: Upkeep

  /// Once a minute: takes over what other replicas made, and makes what is due, one dictionary at most.
  func maintain() async {
    for namespace in state.withLock({ $0.served.keys.sorted { $0.text < $1.text } }) {
      do throws(StoreFailure) {
        let newest = try await refresh(namespace)
        guard let samples = takeSamples(namespace, newest) else { continue }
        try await train(namespace, samples, newest)
        log.faultEnded("dictionaries", "dictionaries are kept again")
        return
      } catch {
        log.fault("dictionaries", "dictionaries can't be kept; packets go without", ["cause": "\(error)"])
      }
    }
  }

  private func refresh(_ namespace: NamespaceName) async throws(StoreFailure) -> KeptDictionary? {
    let newest = try await store.newest(of: namespace)
    state.withLock { $0.served[namespace]?.newest = newest }
    return newest
  }

  /// The samples of a namespace whose next dictionary is due; it begins to collect again.
  private func takeSamples(_ namespace: NamespaceName, _ newest: KeptDictionary?) -> DictionarySamples? {
    let now = time.unixMilliseconds
    return state.withLock { state in
      guard let served = state.served[namespace] else { return nil }
      let last = [newest?.madeTime, served.triedTime].compactMap { $0 }.max()
      let isDue = last.map { now - $0 >= Self.renewalMilliseconds || now < $0 } ?? true
      let isEnough = newest == nil ? served.samples.bytes >= Self.firstBytes : served.samples.isFull
      guard isDue, isEnough else { return nil }
      state.served[namespace]?.samples = DictionarySamples()
      state.served[namespace]?.triedTime = now
      return served.samples
    }
  }

  private func train(
    _ namespace: NamespaceName, _ samples: DictionarySamples, _ newest: KeptDictionary?
  ) async throws(StoreFailure) {
    let made = await training.dictionary(from: samples, present: newest?.dictionary)
    guard let made else { return }
    try await store.keep(KeptDictionary(dictionary: made, madeTime: time.unixMilliseconds), of: namespace)
    _ = try await refresh(namespace)
    log.info(
      "a dictionary was made for packets of the namespace",
      ["namespace": namespace.text, "id": String(made.id), "bytes": String(made.bytes.count)])
  }
}
