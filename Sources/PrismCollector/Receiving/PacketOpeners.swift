import Glibc
import PrismBase
import PrismPacket
import PrismProtocol
import Synchronization

/// Opens packets on all cores, within limits that are checked before the work. A packet costs no more than its own body
/// until it is known to be small enough. All packets together take no more memory than the limit.
final class PacketOpeners: Sendable {
  let keys: SenderKeys
  private let openers: [PacketOpener]
  /// Packets at each opener.
  private let loads: Mutex<[Int]>
  let dictionaries: Dictionaries?
  let memory: MemoryBudget

  /// - Parameter dictionaries: nil: no packet with a dictionary is taken.
  /// - Parameter memoryBytesMax: of all packets, from their decryption until they are stored.
  init(
    keys: SenderKeys, sealed: SealedPayloads = SealedPayloads(), dictionaries: Dictionaries? = nil, memoryBytesMax: Int,
    count: Int = max(1, sysconf(Int32(_SC_NPROCESSORS_ONLN)))
  ) {
    (self.keys, self.dictionaries) = (keys, dictionaries)
    openers = (0..<count).map { _ in PacketOpener(keys: keys, sealed: sealed, dictionaries: dictionaries) }
    loads = Mutex([Int](repeating: 0, count: count))
    memory = MemoryBudget(bytesMax: memoryBytesMax)
  }

  convenience init(
    _ options: CollectorOptions, _ standings: DeviceStandings, _ counts: CollectorCounts, _ dictionaries: Dictionaries
  ) {
    self.init(
      keys: SenderKeys(options.keys, rules: options.keyRules, standings: standings),
      sealed: SealedPayloads(keys: options.sealKeys, counts: counts),
      dictionaries: dictionaries, memoryBytesMax: options.memoryBytesMax)
  }

  /// - Throws: 400 with the reason's code, 401 for a key that this collector does not have, 403 for one that is not for
  ///   the namespace. Also 413 over the limits, 415 for a dictionary that is not known, 422 for a meta that can't be taken,
  ///   503 if too many packets wait.
  /// - Parameter sender: made once the decryption has proved who the sender is, before the packet is unpacked; nil: any
  ///   sender is taken.
  func open(
    _ delivery: Delivery, body: [UInt8], _ sender: SenderCheck? = nil
  ) async throws(CollectorRefusal) -> OpenedPacket {
    try keys.check(delivery.keyID, for: delivery.context.namespace)
    try await keys.refresh(delivery.keyID)
    let opening = PacketOpening(
      delivery: delivery, dictionary: try await dictionary(of: delivery), sender: sender, memory: memory)
    let index = begin()
    defer { loads.withLock { $0[index] -= 1 } }
    switch try await openers[index].open(opening, body: body) {
    case .opened(let packet): return packet
    case .decrypted(let packed):
      do throws(CollectorRefusal) {
        try await sender?.finish()
        guard let lease = await memory.take(try opening.bytes(of: packed)) else { throw .noMemory }
        return try await openers[index].unpack(packed, opening, lease)
      } catch {
        var refusal = error
        refusal.sender = delivery.context
        throw refusal
      }
    }
  }

  private func dictionary(of delivery: Delivery) async throws(CollectorRefusal) -> CompressionDictionary? {
    guard let id = delivery.headers.format.dictionaryID else { return nil }
    if let found = try await dictionaries?.dictionary(id, of: delivery.context.namespace) { return found }
    throw CollectorRefusal(
      415, code: .unknownDictionary, "this collector does not have the dictionary \(id); send the packet without")
  }

  /// The key of the answer to a question for a dictionary.
  /// - Throws: 401 for a key that this collector does not have, 403 for one that is not for the namespace, 503.
  func key(of question: DictionaryQuestion) async throws(CollectorRefusal) -> Secret {
    try keys.check(question.keyID, for: question.namespace)
    try await keys.refresh(question.keyID)
    do throws(PacketError) {
      return try keys.secret(question.keyID, of: question.deviceID, cipher: question.cipher)
    } catch { throw CollectorRefusal(503, "the key could not be derived; try again", retryAfterSeconds: 5) }
  }

  /// The value of `Prism-Receipt` for an answer with this body; with a status, of `Prism-Verdict`.
  /// - Throws: 503 without memory.
  func receipt(
    for delivery: Delivery, answer: [UInt8], refusal status: Int? = nil
  ) throws(CollectorRefusal) -> String {
    do throws(PacketError) {
      let proof = try PacketReceipt(key: keys.secret(for: delivery), refusal: status)
      return try proof.text(for: delivery.headers, answer: answer)
    } catch { throw CollectorRefusal(503, "the receipt could not be made; try again", retryAfterSeconds: 5) }
  }

  /// The body of an answer to a question for records.
  /// - Throws: 400 for a key of another length; 401 for a key that this collector does not have, 403 for one that is not for
  ///   the namespace. 503 if the packed lines can't be read.
  func body(
    _ headers: DownHeaders, packed: any PieceSource & Sendable
  ) throws(CollectorRefusal) -> sending DownBody {
    try keys.check(headers.format.keyID, for: headers.namespace)
    do throws(PacketError) {
      let key = try keys.secret(headers.format.keyID, of: headers.deviceID, cipher: headers.format.cipher)
      return try DownBody(headers, packed: packed, key: key)
    } catch {
      guard error == .keyLength else {
        throw CollectorRefusal(503, "the answer could not be made; try again", retryAfterSeconds: 5)
      }
      throw CollectorRefusal(400, code: .keyLength, "the key of this id is not one of the cipher of Prism-Cipher")
    }
  }

  /// - Throws: 401 and 403, as `body`, before there is any work for the answer.
  func check(_ question: DownQuestion) async throws(CollectorRefusal) {
    try keys.check(question.keyID, for: question.namespace)
    try await keys.refresh(question.keyID)
  }

  /// The opener that has the least to do.
  private func begin() -> Int {
    loads.withLock { loads in
      let index = loads.indices.min { loads[$0] < loads[$1] } ?? 0
      loads[index] += 1
      return index
    }
  }
}
