import PrismPacket
import PrismProtocol

/// Reports at rest: the meta blocks of packets, one after the other in the order of their reports' ids, and what is known of
/// each packet. A block has the same bytes in every store (docs/collector-internals.md, "How reports are stored").
struct ReportBlock: Sendable {
  /// Reports of one packet, whose ids follow each other.
  struct Run: Sendable, Equatable {
    var first: Int64
    var count: Int
    var stream: StreamID
    var packet: PacketID
    /// Milliseconds since 1970, of the collector's clock.
    var received: Int64
    var chainIsBroken = false
    /// Milliseconds that the device's clock was behind.
    var correction: Int64 = 0
    /// Of each report; empty for the kind `meta`.
    var payloadBytes: [Int] = []

    var ids: ClosedRange<Int64> { first...first + Int64(count) - 1 }
  }

  /// Blocks are merged up to these reports, and bytes of their lines.
  static let (rowsMax, textBytesMax) = (65_536, 4 * 1_048_576)
  /// A block of one packet may be larger.
  static let limits = PacketLimits(metaBlockBytesMax: 64 * 1_048_576, rowsMax: 2 * rowsMax)

  var runs: [Run]
  /// The lines of the meta blocks: rows, and common information before those that share it.
  var text: [UInt8]

  // MARK: At rest

  /// The body: the length of the packed runs in four bytes, big-endian, the runs, the lines.
  func packed(_ packer: RestPacker) throws(PacketError) -> [UInt8] {
    let runs = try packer.pack(Array(self.runs.map(\.line).joined(separator: [UInt8(ascii: "\n")])))
    let length = [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: runs.count >> $0) }
    return length + runs + (try packer.pack(text))
  }

  /// - Parameter body: that its checksum tells to be what was written.
  init(unpacking body: [UInt8], _ packer: RestPacker) throws(PacketError) {
    let parts = try Self.parts(of: body)
    runs = []
    for line in try packer.unpack(parts.runs, Self.limits).split(separator: UInt8(ascii: "\n")) {
      guard let run = (try? JSONValue(parsing: line)).flatMap({ Run($0) }) else { throw .unpackFailed }
      runs.append(run)
    }
    text = try packer.unpack(parts.lines, Self.limits)
  }

  static func parts(of body: [UInt8]) throws(PacketError) -> (runs: ArraySlice<UInt8>, lines: ArraySlice<UInt8>) {
    guard body.count > 4 else { throw .unpackFailed }
    let length = body[..<4].reduce(0) { $0 << 8 | Int($1) }
    guard length < body.count - 4 else { throw .unpackFailed }
    return (body[4..<4 + length], body[(4 + length)...])
  }

  init(runs: [Run], text: [UInt8]) { (self.runs, self.text) = (runs, text) }

  /// Some reports of a packet, mostly all of them.
  /// - Parameter run: of the packet; its first id is that of the first of these.
  /// - Throws: `CollectorRefusal`, `PacketError`: never for a packet that was opened.
  static func part(
    of packet: OpenedPacket, _ run: Run, rows: Range<Int>
  ) throws -> (block: ReportBlock, reports: ReportRows) {
    guard rows.count < packet.rows.count else { return (ReportBlock(runs: [run], text: packet.text), packet.reports) }
    let metas = try MetaBlock(parsing: packet.text, rowsMax: limits.rowsMax)
    let (first, last) = (metas.rows[rows.lowerBound], metas.rows[rows.upperBound - 1])
    let common = first.common.map { metas.text[$0] + [UInt8(ascii: "\n")] } ?? []
    var part = run
    (part.count, part.payloadBytes) = (rows.count, run.payloadBytes.isEmpty ? [] : Array(run.payloadBytes[rows]))
    let text = Array(common) + metas.text[first.line.lowerBound..<last.line.upperBound]
    let opened = try OpenedBlock(ReportBlock(runs: [part], text: text), CommonCache())
    return (opened.block, opened.reports)
  }

  /// The row of a store that has it. - Parameter reports: those in its lines.
  func row(_ reports: ReportRows, _ packer: RestPacker) throws(PacketError) -> (head: BlockHead, body: [UInt8]) {
    let body = try packed(packer)
    return (BlockHead(runs, reports, textBytes: text.count, body: body), body)
  }

  /// The same of a block that was made of others.
  func row() throws -> (head: BlockHead, body: [UInt8]) {
    try row(try OpenedBlock(self, CommonCache()).reports, try RestPacker())
  }
}

extension ReportBlock.Run {
  /// One JSON object in one line.
  fileprivate var line: [UInt8] {
    let value: JSONValue = [
      "i": .int(first), "n": .int(count), "d": .string(stream.device), "s": .string(stream.namespace.text),
      "k": .string(stream.kind.name), "p": .string(packet.description), "r": .int(received), "b": .bool(chainIsBroken),
      "c": .int(correction), "z": .array(payloadBytes.map { .int($0) }),
    ]
    return Array(value.text.utf8)
  }

  fileprivate init?(_ value: JSONValue) {
    guard let first = value["i"]?.int, let count = value["n"]?.int, count > 0, let device = value["d"]?.string,
      let namespace = value["s"]?.string.flatMap({ NamespaceName($0) }),
      let kind = value["k"]?.string.flatMap({ RowKind(named: $0) }),
      let packet = value["p"]?.string.flatMap({ PacketID($0) }), let received = value["r"]?.int,
      let chainIsBroken = value["b"]?.bool, let correction = value["c"]?.int
    else { return nil }
    self.init(
      first: Int64(first), count: count, stream: StreamID(device: device, namespace: namespace, kind: kind),
      packet: packet,
      received: Int64(received), chainIsBroken: chainIsBroken, correction: Int64(correction),
      payloadBytes: value["z"]?.array?.compactMap(\.int) ?? [])
    guard payloadBytes.count == (kind.hasPayload ? count : 0) else { return nil }
  }
}
