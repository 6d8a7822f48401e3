import PrismBase
import PrismProtocol

/// The changes of a body, one a line; empty lines are left out.
struct ChangeLines {
  private let body: [UInt8]
  private var ranges: LineRanges
  /// The line that was read last, and the last one that holds.
  private var (line, taken): (Int, Int)
  /// The lines of the changes that were returned last.
  private var numbers: [Int] = []

  /// - Parameter firstLine: the number of the body's first line in the file that it is from.
  init(_ body: [UInt8], firstLine: Int) {
    (self.body, ranges) = (body, LineRanges(body))
    (line, taken) = (firstLine - 1, firstLine - 1)
  }

  /// - Returns: nil behind the last. - Throws: 400 for a line that is no change.
  mutating func next(atMost limit: Int) throws(CollectorRefusal) -> [RecordChange]? {
    var changes: [RecordChange] = []
    numbers = []
    while changes.count < limit, let range = ranges.next() {
      line += 1
      guard !range.isEmpty else { continue }
      numbers.append(line)
      do throws(CollectorRefusal) { changes.append(try RecordChange(line: Array(body[range]))) } catch {
        var refusal = error
        refusal.place = numbers.count - 1
        throw refusal
      }
    }
    return changes.isEmpty ? nil : changes
  }

  /// The changes that were returned hold.
  mutating func areTaken() { taken = line }

  /// Why the changes that were returned last do not hold, with the line.
  func refusal(_ refusal: CollectorRefusal) -> CollectorRefusal {
    let line = refusal.place.map { "line \(numbers[$0]): " } ?? ""
    return CollectorRefusal(
      refusal.status, "\(line)\(refusal.message); the first \(taken) lines are carried out",
      retryAfterSeconds: refusal.retryAfterSeconds)
  }
}

extension RecordChange {
  /// Reads a line. - Throws: 400 for a line that is no change.
  fileprivate init(line: [UInt8]) throws(CollectorRefusal) {
    guard let value = try? JSONValue(parsing: line), let members = value.object,
      let id = value["id"]?.string.flatMap({ RecordID($0) }), members.count == 2,
      let other = members.first(where: { $0.key != "id" })
    else { throw Self.unreadable }
    self.id = id
    switch (other.key, other.value) {
    case ("fields", .object): action = .put(other.value)
    case ("patch", .object): action = .patch(other.value)
    case ("delete", .bool(true)): action = .delete
    default: throw Self.unreadable
    }
  }

  private static let unreadable = CollectorRefusal(
    400, #"it is no change, such as {"id":…,"fields":{…}}, {"id":…,"patch":{…}} or {"id":…,"delete":true}"#)
}

/// The rules for changes of the built-in tables. The server makes commands as devices read them, and takes them back, and never
/// changes one (docs/records.md, "Sending commands"). It leaves the tags of a device's own file alone (docs/fleet.md, "Tags").
struct CommandRule {
  private let place: RecordPlace
  /// Milliseconds since 1970.
  private let now: Int64

  init(_ place: RecordPlace, now: Int64) { (self.place, self.now) = (place, now) }

  /// - Returns: the condition under which the changes are to be made. - Throws: 422 for a command that no device reads.
  func check(_ changes: [RecordChange], _ condition: ChangeCondition) throws(CollectorRefusal) -> ChangeCondition {
    if place.table == .tags { try checkTags(changes) }
    guard place.table == .command else { return condition }
    guard let device = place.device else {
      throw CollectorRefusal(422, "a command is for one device; name it in `device`")
    }
    let requests = changes.filter { $0.action != .delete }
    for change in requests { try check(change, of: device) }
    if requests.isEmpty { return condition }
    guard requests.count == changes.count else {
      throw CollectorRefusal(422, "send new commands and deletions in requests of their own")
    }
    return .isNew
  }

  private func checkTags(_ changes: [RecordChange]) throws(CollectorRefusal) {
    guard place.device != nil else { throw CollectorRefusal(422, "tags are of one device; name it in `device`") }
    if let other = changes.first(where: { $0.id != DeviceTags.Source.operator.id }) {
      throw CollectorRefusal(
        422,
        "\(other.id.text): an operator writes the record `operator` of \(place.table); the others are the device's and its "
          + "enrollment's")
    }
  }

  private func check(_ change: RecordChange, of device: String) throws(CollectorRefusal) {
    guard case .put(let fields) = change.action else {
      throw CollectorRefusal(422, "\(change.id.text): a command is never changed; delete it, or send another one")
    }
    do throws(CommandFault) {
      try CommandRequest(fields: fields, namespace: place.namespace, deviceID: device, id: change.id).check(now: now)
    } catch { throw CollectorRefusal(422, "\(change.id.text): \(error.message)") }
    guard CommandAnswer(fields: fields) == nil else {
      throw CollectorRefusal(422, "\(change.id.text): state and result are written by the device")
    }
  }
}
