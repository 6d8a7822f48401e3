import PrismProtocol

/// The rules for changes of the built-in tables. The server makes commands as devices read them, and takes them back, and never
/// changes one (docs/records.md, "Sending commands"). It leaves the tags of a device's own file alone (docs/fleet.md, "Tags").
struct CommandRule {
  private let place: RecordPlace
  /// Milliseconds since 1970.
  private let now: Int64

  init(_ place: RecordPlace, now: Int64) { (self.place, self.now) = (place, now) }

  /// - Returns: the condition under which the changes are to be made. - Throws: 422 for a command that no device reads.
  func check(
    _ changes: [RecordChange], _ condition: ChangeCondition
  ) throws(CollectorRefusal) -> ChangeCondition {
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
    let sources = DeviceTags.Source.allCases.filter { $0 != .device }.map(\.rawValue)
    if let other = changes.first(where: { !sources.contains($0.id.text) }) {
      throw CollectorRefusal(
        422,
        "\(other.id.text): an operator writes the record `operator` of \(place.table); `device` is the device's own")
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
