import Glibc
import PrismBase
import PrismConfig
import PrismPacket
import PrismProtocol
import Synchronization

/// Opens packets on all cores, within limits that are checked before the work. A packet costs no more than its own body
/// until it is known to be small enough. All packets together take no more memory than the limit.
final class PacketOpeners: Sendable {
  let keys: SenderKeys
  private let openers: [PacketOpener]
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
      dictionaries: dictionaries, memoryBytesMax: options.memoryBytes)
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
      } catch { throw error.of(delivery.context) }
    }
  }

  private func dictionary(of delivery: Delivery) async throws(CollectorRefusal) -> CompressionDictionary? {
    guard let id = delivery.headers.format.dictionaryID else { return nil }
    if let found = try await dictionaries?.dictionary(id, of: delivery.context.namespace) { return found }
    throw CollectorRefusal(
      415, code: .unknownDictionary, "this collector does not have the dictionary \(id); send the packet without")
  }

  /// The key of a device that asks.
  /// - Throws: 401 for a key that this collector does not have, 403 for one that is not for the namespace, 503.
  func key(
    _ id: String, of device: String, _ namespace: NamespaceName, _ cipher: Cipher
  ) async throws(CollectorRefusal) -> Secret {
    try keys.check(id, for: namespace)
    try await keys.refresh(id)
    do throws(PacketError) {
      return try keys.secret(id, of: device, cipher: cipher)
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

  /// - Throws: 401 and 403, as `body`, and 401 for a question that no holder of the device's key asked, before any work for it.
  func check(_ question: DownQuestion, _ mac: String?) async throws(CollectorRefusal) {
    let key = try await key(question.keyID, of: question.deviceID, question.namespace, question.cipher)
    guard (try? question.isProven(by: mac, key: key)) == true else {
      throw CollectorRefusal(
        401, code: .macMismatch,
        "Prism-Mac is missing, or is not that of the device's key over this question; compare the keys of both ends")
    }
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

/// Decrypts and unpacks, on a queue of its own.
actor PacketOpener {
  /// Keys of which the reader is kept: each holds decompressors.
  private static let readersMax = 64

  private let executor = DispatchQueueExecutor(label: "prism.collector.packets")
  nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

  private let keys: SenderKeys
  private let sealed: SealedPayloads
  private let dictionaries: Dictionaries?
  private var readers: [String: PacketReader] = [:]
  private let commons = CommonCache()

  init(keys: SenderKeys, sealed: SealedPayloads, dictionaries: Dictionaries?) {
    (self.keys, self.sealed, self.dictionaries) = (keys, sealed, dictionaries)
  }

  /// A packet on its way: opened, or waiting for something that takes a while.
  enum Progress: Sendable {
    case opened(OpenedPacket)
    /// Its memory has to be waited for, or the check of its sender.
    case decrypted(PackedPacket)
  }

  /// Opens the packet in one go, if its sender is known and there is memory for it now.
  /// - Throws: 400 with the reason's code, 401 for a key that this collector does not have, 503; 413 over the limits; those
  ///   of the checks.
  func open(_ opening: PacketOpening, body: [UInt8]) throws(CollectorRefusal) -> Progress {
    let packed: PackedPacket
    do throws(PacketError) {
      packed = try reader(opening).decrypt(opening.delivery.headers, body: body, mac: opening.delivery.mac)
    } catch { throw CollectorRefusal(error) }
    do throws(CollectorRefusal) {
      guard try opening.sender?.begin() ?? true,
        let lease = opening.memory.takeAtOnce(try opening.bytes(of: packed))
      else { return .decrypted(packed) }
      return .opened(try unpack(packed, opening, lease))
    } catch { throw error.of(opening.delivery.context) }
  }

  /// Unpacks, reads the rows, and opens sealed payloads.
  /// - Throws: 400, 413 over the limits; 413 for a row that gets too long; 422 for a meta that can't be taken; 503 without
  ///   memory.
  func unpack(
    _ packed: PackedPacket, _ opening: PacketOpening, _ lease: MemoryBudget.Lease
  ) throws(CollectorRefusal) -> OpenedPacket {
    let read: ReadPacket
    do throws(PacketError) { read = try reader(opening).unpack(packed) } catch { throw CollectorRefusal(error) }
    let delivery = opening.delivery
    if delivery.context.kind.isReport {
      dictionaries?.offer(read.metas, from: delivery.context, derivesKeys: keys.derives(delivery.keyID))
    }
    let opened = try OpenedPacket(delivery, read, commons, lease: lease)
    return try sealed.opened(opened, lease: lease)
  }

  private func reader(_ opening: PacketOpening) throws(PacketError) -> PacketReader {
    let (delivery, dictionary) = (opening.delivery, opening.dictionary)
    let name = keys.name(for: delivery) + (dictionary.map { " \($0.id)" } ?? "")
    if let reader = readers[name] { return reader }
    if readers.count >= Self.readersMax { readers = [:] }
    let reader = try PacketReader(
      cipher: delivery.cipher, key: try keys.secret(for: delivery), dictionary: dictionary, commons: commons)
    readers[name] = reader
    return reader
  }
}

/// The checks on the way of one packet from its bytes to its rows. Its sender is checked before more memory is spent than its
/// own bytes. Then there must be memory for its rows.
struct PacketOpening: Sendable {
  private static let rowBytes = MemoryLayout<OpenedPacket.Row>.stride + MemoryLayout<MetaBlock.Row>.stride

  let delivery: Delivery
  /// The one that the packet names.
  let dictionary: CompressionDictionary?
  /// nil: any sender is taken.
  let sender: SenderCheck?
  let memory: MemoryBudget

  /// The memory that the packet takes, with what its rows are expected to take.
  /// - Throws: 413, 400 before it is unpacked.
  func bytes(of packed: PackedPacket) throws(CollectorRefusal) -> Int {
    try check(packed)
    // A store makes a copy of one payload at a time.
    let payloadBytes = packed.payloadBytes + packed.largestPayloadBytes
    // The text is copied if metas are merged or escapes resolved.
    let metaBytes = 2 * packed.metaBytes + RowReader.spareBytes
    let bytes = packed.packedBytes + packed.workBytes + metaBytes + payloadBytes + delivery.itemCount * Self.rowBytes
    guard bytes <= memory.bytesMax else {
      throw Self.tooLarge("it takes \(bytes) bytes of memory", memory.bytesMax)
    }
    return bytes
  }

  private func check(_ packet: PackedPacket) throws(CollectorRefusal) {
    // Each row with its common information, and the characters around the two lines.
    let metaBytesMax = delivery.itemCount * (delivery.context.kind.lineBytesMax + 32)
    guard packet.metaBytes <= metaBytesMax else {
      throw Self.tooLarge("its metas unpack to \(packet.metaBytes) bytes", metaBytesMax)
    }
    guard !delivery.context.kind.hasPayload || packet.payloadCount == delivery.itemCount else {
      throw CollectorRefusal(
        400, code: .countMismatch,
        "the packet holds \(packet.payloadCount) payloads, Prism-Item-Count is \(delivery.itemCount)")
    }
  }

  /// - Parameter bytes: what its rows take, with their common information.
  static func rowsTooLarge(_ bytes: Int, _ memory: MemoryBudget.Lease) -> CollectorRefusal {
    tooLarge("its rows take \(bytes) bytes of memory", memory.bytesMax)
  }

  private static func tooLarge(_ what: String, _ most: Int) -> CollectorRefusal {
    CollectorRefusal(413, code: .tooLarge, "the packet is too large: \(what); at most \(most) are taken")
  }
}

/// Opens payloads that devices sealed to a key of this collector (docs/packet.md, "Sealed payloads").
struct SealedPayloads: Sendable {
  var keys: [SealingPrivateKey] = []
  var counts: CollectorCounts?

  /// The packet with its payloads opened. One that no key opens, or that is too large for all memory, stays as it came, for a
  /// holder of its key.
  /// - Throws: 503 without memory.
  func opened(_ packet: OpenedPacket, lease: MemoryBudget.Lease) throws(CollectorRefusal) -> OpenedPacket {
    if keys.isEmpty { return packet }
    var packet = packet
    for index in packet.payloads.indices where packet.payloads[index].starts(with: SealedPayload.magic) {
      let payload = try opened(packet.payloads[index], packet, packet.rows[index], lease)
      counts?.count(.sealed, payload == nil ? "kept" : "opened")
      if let payload { packet.payloads[index] = payload }
    }
    return packet
  }

  private func opened(
    _ payload: [UInt8], _ packet: OpenedPacket, _ row: OpenedPacket.Row, _ lease: MemoryBudget.Lease
  ) throws(CollectorRefusal) -> [UInt8]? {
    let context = packet.delivery.context
    let report = SealedReport(
      deviceID: context.deviceID, namespace: context.namespace,
      reportID: String(decoding: packet.reports.bytes[row.reportID], as: UTF8.self))
    for key in keys {
      guard let contents = try? SealedPayload.contents(of: payload, with: key, of: report) else { continue }
      // A sender who says more than can ever be taken would send the packet for ever.
      guard lease.mayGrow(by: contents.byteCount) else { return nil }
      guard lease.grow(by: contents.byteCount) else { throw .noMemory }
      return try? contents.unpacked()
    }
    return nil
  }
}
