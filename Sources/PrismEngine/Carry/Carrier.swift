import PrismBase
import PrismControl
import PrismPacket
import PrismProtocol

/// Hands packets to one reader of the control socket, as files in parts, instead of sending them. A packet waits until its
/// reader has taken the whole file: one is in memory at a time.
actor Carrier: Output {
  /// Of a file in one line; base64 makes it a third longer.
  private static let partBytesMax = 48 * 1024

  private var file: (bytes: [UInt8], sent: Int)?
  private var head: JSONValue?
  private var last: JSONValue?
  private var isClosed = false
  private(set) var linesTaken = 0
  private var total = CarriedReport()
  /// Those who wait for a change of any of it.
  private var waiters: [CheckedContinuation<Void, Never>] = []

  /// Packets that a reader has taken whole.
  var taken: CarriedReport { total }
  /// The reader has gone, or takes no more.
  var hasNoReader: Bool { isClosed }
  var hasLine: Bool { head != nil || file != nil }

  func deliver(_ packet: OutgoingPacket) async -> DeliveryOutcome {
    while file != nil, !isClosed { await change() }
    guard !isClosed else { return DeliveryOutcome(.carried, mayHaveLeft: false) }
    let carried = CarriedPacket(headers: packet.headers, mac: packet.mac, body: packet.body)
    let bytes = carried.fileBytes
    head = ["file": ["name": .string(carried.fileName), "bytes": .int(bytes.count)]]
    file = (bytes, 0)
    changed()
    while file != nil, !isClosed { await change() }
    guard file == nil else { return DeliveryOutcome(.carried, mayHaveLeft: true) }
    total.packets += 1
    total.reports += packet.headers.itemCount
    total.bytes += bytes.count
    return DeliveryOutcome(.carried, mayHaveLeft: true)
  }

  /// The next line of the answer; nil after the last.
  func next() async -> JSONValue? {
    while true {
      if let line = takeLine() {
        linesTaken += 1
        return line
      }
      guard !isClosed else { return nil }
      await change()
    }
  }

  private func takeLine() -> JSONValue? {
    if !isClosed, let line = head.take() ?? nextPart() { return line }
    guard let line = last.take() else { return nil }
    isClosed = true
    return line
  }

  /// Nothing more is carried; this line is the end of the answer.
  func finish(_ line: JSONValue) {
    last = line
    changed()
  }

  /// The reader has gone, or is not waited for any more: it can only read the last line.
  func close() {
    isClosed = true
    changed()
  }

  private func nextPart() -> JSONValue? {
    guard let file else { return nil }
    let end = min(file.bytes.count, file.sent + Self.partBytesMax)
    let part: JSONValue = ["part": .string(Base64.encode(Array(file.bytes[file.sent..<end])))]
    self.file = end == file.bytes.count ? nil : (file.bytes, end)
    if self.file == nil { changed() }
    return part
  }

  private func change() async {
    await withCheckedContinuation { waiters.append($0) }
  }

  private func changed() {
    let woken = waiters
    waiters = []
    for waiter in woken { waiter.resume() }
  }
}
