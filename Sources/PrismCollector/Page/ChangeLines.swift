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
