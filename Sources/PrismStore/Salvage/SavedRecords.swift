import PrismProtocol

/// A line of the ledger as it stands in its table.
struct LedgerRecord {
  var queue: QueueID
  var ledger = Ledger()
  var bytes = 0
  var lastSequence: Int64 = 0
  var newestCreated = LaneValues { _ in .min }
  var lastAccepted: [UInt8]?

  init(queue: QueueID) { self.queue = queue }

  /// nil: it is not what was written.
  init?(_ record: SQLiteRecord) {
    let numbers = (0..<17).compactMap { record.int($0) }
    guard numbers.count == 17, (1...1_000_000).contains(numbers[0]), (0...1).contains(numbers[1]) else { return nil }
    queue = QueueID(namespace: Int(numbers[0]), kind: QueueID.kind(numbered: Int(numbers[1])))
    lastAccepted = record.data(17).map(Array.init)
    let sum = RowSum.ofLedger(queue, Array(numbers[2...]), lastAccepted: lastAccepted)
    guard record.columnCount < 19 || record.int(18) == sum else { return nil }
    // Within what can be added up.
    guard numbers[2..<13].allSatisfy({ (0...(1 << 48)).contains($0) }) else { return nil }
    ledger.stored = Int(numbers[2])
    for (index, account) in Ledger.Account.allCases.enumerated() { ledger[account] = Int(numbers[3 + index]) }
    (bytes, lastSequence) = (Int(numbers[12]), numbers[13])
    newestCreated = LaneValues { numbers[14 + $0.rawValue] }
    guard ledger.isBalanced else { return nil }
  }

  var values: [SQLiteValue] {
    let counts = [ledger.stored] + Ledger.Account.allCases.map { ledger[$0] } + [bytes]
    let numbers = counts.map { Int64($0) } + [lastSequence] + Lane.allCases.map { newestCreated[$0] }
    let sum = RowSum.ofLedger(queue, numbers, lastAccepted: lastAccepted)
    return [.int(Int64(queue.namespace)), .int(Int64(QueueID.number(of: queue.kind)))] + numbers.map { .int($0) }
      + [lastAccepted.map { .blob($0) } ?? .null, .int(sum)]
  }
}

/// A packet in flight as it stands in its table.
struct PacketRecord {
  var queue: QueueID
  var id: [UInt8]
  var position: Int64
  var createdTime: Int64
  var bytes: Int
  var hasClientIDs: Bool
  var header: String
  var members: IDRuns

  /// nil: it is not what was written.
  init?(_ record: SQLiteRecord) {
    guard let id = record.data(0), PacketID(bytes: Array(id)) != nil, let namespace = record.int(1),
      let kind = record.int(2), let position = record.int(3), let created = record.int(4), let bytes = record.int(5),
      let hasClientIDs = record.int(6), let header = record.text(7), let text = record.text(8),
      let members = IDRuns(text: text), members.count <= 1 << 20, (1...1_000_000).contains(namespace)
    else { return nil }
    queue = QueueID(namespace: Int(namespace), kind: QueueID.kind(numbered: Int(truncatingIfNeeded: kind)))
    (self.id, self.position, createdTime) = (Array(id), position, created)
    (self.bytes, self.hasClientIDs) = (Int(bytes), hasClientIDs != 0)
    (self.header, self.members) = (header, members)
    guard record.columnCount < 10 || record.int(9) == sum else { return nil }
  }

  private var sum: Int64 {
    RowSum.ofPacket(
      id, queue, createdTime: createdTime, hasClientIDs: hasClientIDs, header: header, members: members.text)
  }

  var values: [SQLiteValue] {
    [
      .blob(id), .int(Int64(queue.namespace)), .int(Int64(QueueID.number(of: queue.kind))), .int(position),
      .int(createdTime), .int(Int64(bytes)), .int(hasClientIDs ? 1 : 0), .text(header), .text(members.text), .int(sum),
    ]
  }
}

/// A dead letter as it stands in its table.
struct DeadLetterRecord {
  let queue: QueueID
  let size: Int
  let values: [SQLiteValue]

  /// nil: it is not what was written.
  init?(_ record: SQLiteRecord) {
    let numbers = [1, 2, 3, 4, 5, 6, 7, 10, 12, 13].compactMap { record.int($0) }
    guard numbers.count == 10, (1...1_000_000).contains(numbers[0]), let reportID = record.data(8).map(Array.init),
      let packet = record.data(9).map(Array.init), PacketID(bytes: packet) != nil, let message = record.text(11),
      let body = record.data(14).map(Array.init)
    else { return nil }
    queue = QueueID(namespace: Int(numbers[0]), kind: QueueID.kind(numbered: Int(truncatingIfNeeded: numbers[1])))
    size = Int(numbers[6])
    let payload = record.data(15).map(Array.init)
    let owner = RowOwner(stored: record.int(17) ?? -1)
    let sum = Self.sum(
      row: numbers[2], type: numbers[3], createdTime: numbers[4], flags: numbers[5], size: numbers[6],
      reportID: reportID, body: body, payload: payload, owner: owner)
    guard record.columnCount < 17 || record.isNull(16) || record.int(16) == sum,
      (payload != nil) == (queue.kind == .payload)
    else { return nil }
    values =
      [.int(record.id)] + numbers[0..<7].map { .int($0) }
      + [
        .text(String(decoding: reportID, as: UTF8.self)), .blob(packet), .int(numbers[7]), .text(message),
        .int(numbers[8]), .int(numbers[9]), .blob(body), payload.map { .blob($0) } ?? .null, .int(sum),
        .int(owner.number),
      ]
  }

  /// Of what would be sent again if it were queued anew.
  static func sum(
    row: Int64, type: Int64, createdTime: Int64, flags: Int64, size: Int64, reportID: [UInt8], body: [UInt8],
    payload: [UInt8]?, owner: RowOwner
  ) -> Int64 {
    var sum = RowSum(row, type, createdTime, flags, size)
    sum.add(reportID)
    sum.add(body)
    if let payload { sum.add(payload) }
    // Versions before 3 knew no owner.
    if owner != .unknown { sum.add([owner.number]) }
    return sum.value
  }
}
