import PrismBase
import PrismHTTP
import PrismProtocol

/// Answers the API about one record, and changes records (docs/records.md, "Change records").
struct RecordAPI: PageAnswers {
  static let prefix = "/records/{namespace}/{table}"
  /// Of a question for records.
  static let parameters = ["namespace", "table", "device", "id", "field", "after", "limit"]

  static let changesMax = 1000

  let api: PageAPI

  // MARK: Reading

  /// `GET /records/{namespace}/{table}`: a page of all records of the table, or of those of one device.
  func list(_ request: PageRequest) async throws(CollectorRefusal) -> HTTPResponse {
    let place = try Self.place(request)
    var filter = RecordFilter(scope: request.scope, namespace: place.namespace, table: place.table)
    filter.device = place.device
    return try await find(request, &filter)
  }

  /// `GET /records/{namespace}/{table}/{record}`.
  func get(_ request: PageRequest) async throws(CollectorRefusal) -> HTTPResponse {
    let (place, id) = (try Self.place(request), try Self.id(request))
    let found = try await api.ask { () throws(StoreFailure) in try await api.collector.store.record(id, of: place) }
    guard let record = found else {
      let isPending = try await api.ask { () throws(StoreFailure) in
        try await api.collector.store.isDeletionPending(id, of: place)
      }
      let deletion = isPending ? "; it is deleted, and its device has not fetched that yet" : ""
      throw CollectorRefusal(404, "there is no record of this id\(deletion)")
    }
    guard request.http.header("if-none-match").map({ Self.tags($0)?.contains(record.tag) ?? true }) != true else {
      return HTTPResponse(status: 304, headers: [("ETag", record.tag)])
    }
    return Self.response(record, status: 200)
  }

  private static func response(_ record: CollectedRecord, status: Int) -> HTTPResponse {
    HTTPResponse(
      status: status, headers: [("Content-Type", "application/json"), ("ETag", record.tag)],
      body: record.fetchedText + [UInt8(ascii: "\n")])
  }

  // MARK: Changing

  func put(_ request: PageRequest) async throws(CollectorRefusal) -> HTTPResponse {
    try await change(request, .put(try Self.fields(request, type: "application/json")))
  }

  func patch(_ request: PageRequest) async throws(CollectorRefusal) -> HTTPResponse {
    try await change(request, .patch(try Self.fields(request, type: "application/merge-patch+json")))
  }

  func delete(_ request: PageRequest) async throws(CollectorRefusal) -> HTTPResponse {
    try await change(request, .delete)
  }

  private func change(_ request: PageRequest, _ action: RecordChange.Action) async throws(CollectorRefusal)
    -> HTTPResponse
  {
    let (place, id) = (try Self.place(request), try Self.id(request))
    let results = try await change(
      [RecordChange(id: id, action: action)], of: place, if: try Self.condition(request.http), request)
    switch results.first {
    case .stored(let record?, let wasMade): return Self.response(record, status: wasMade ? 201 : 200)
    case .deleted: return PageAPI.json(["deleted": true])
    case .absent: return PageAPI.json(["deleted": false])
    case .stored(nil, _), nil: throw CollectorRefusal.unreadable  // it was deleted at once
    }
  }

  /// `POST /records/{namespace}/{table}`: a change a line, `{"id":…,"fields":…}`, `{"id":…,"patch":…}` or
  /// `{"id":…,"delete":true}`, a thousand in a transaction.
  func changeMany(_ request: PageRequest) async throws(CollectorRefusal) -> HTTPResponse {
    try Self.check(request.http, type: "application/x-ndjson")
    let place = try Self.place(request)
    let first = try request.number("firstLine", in: 1...Int64(Int32.max)) ?? 1
    var (lines, counts) = (ChangeLines(request.http.body, firstLine: Int(first)), (stored: 0, deleted: 0))
    do throws(CollectorRefusal) {
      while let changes = try lines.next(atMost: Self.changesMax) {
        for result in try await change(changes, of: place, if: .always, request) {
          switch result {
          case .stored: counts.stored += 1
          case .deleted: counts.deleted += 1
          case .absent: break
          }
        }
        lines.areTaken()
      }
    } catch { throw lines.refusal(error) }
    return PageAPI.json(["stored": counts.stored, "deleted": counts.deleted])
  }

  /// - Throws: 404 for a device that sends nothing to the reader's namespaces: for this reader it does not exist.
  private func checkSender(_ device: String, _ scope: Scope) async throws(CollectorRefusal) {
    let queries = api.scan.queries
    let streams = try await api.ask { () throws(StoreFailure) in
      try await queries.streams(scope.ofDevices, of: device, limit: 1)
    }
    if streams.isEmpty { throw CollectorRefusal(404, "no device of this id sends to a namespace of yours") }
  }

  /// Makes the changes in one transaction, counts them, and writes them to the log.
  private func change(
    _ changes: [RecordChange], of place: RecordPlace, if condition: ChangeCondition, _ request: PageRequest
  ) async throws(CollectorRefusal) -> [RecordChanged] {
    let (store, counts) = (api.collector.store, api.collector.counts)
    let condition = try CommandRule(place, now: api.collector.time.unixMilliseconds).check(changes, condition)
    if place.table == .tags, request.scope.isLimited { try await checkSender(place.owner, request.scope) }
    let what = changes.count == 1 ? changes[0].id.text : "\(changes.count) records"
    do throws(RecordFailure) {
      let results = try await store.change(changes, of: place, if: condition)
      counts.count(.recordChanges, "done", changes.count)
      if place.table == .tags { api.collector.access.page.forgetDevices() }
      api.note(
        request, did: changes.count == 1 ? "record: \(changes[0].action.name)" : "records",
        to: "\(place.namespace)/\(place.table)/\(what)\(place.device.map { " of \($0)" } ?? "")")
      return results
    } catch {
      counts.count(.recordChanges, "refused", changes.count)
      throw CollectorRefusal(error, changes)
    }
  }

  // MARK: Parts of a request

  private static func place(_ request: PageRequest) throws(CollectorRefusal) -> RecordPlace {
    guard let namespace = NamespaceName(request.parts[0]) else {
      throw CollectorRefusal(400, "the path names no namespace; it is /records/NAMESPACE/TABLE/ID")
    }
    guard request.scope.has(namespace.text) else {
      throw CollectorRefusal(403, "this token is for other namespaces")
    }
    guard let table = RecordTableName(request.parts[1]) else {
      throw CollectorRefusal(400, "the path names no table; a name has 1 to 64 of A-Z a-z 0-9 _ -")
    }
    let device = request.http.parameter("device")
    guard device.map({ (1...256).contains($0.utf8.count) && $0.isVisibleASCII }) ?? true else {
      throw CollectorRefusal(400, "device: must be 1 to 256 visible ASCII characters")
    }
    return RecordPlace(namespace: namespace, table: table, device: device)
  }

  private static func id(_ request: PageRequest) throws(CollectorRefusal) -> RecordID {
    guard let id = RecordID(request.parts[2]) else {
      throw CollectorRefusal(400, "an id has 1 to \(RecordID.bytesMax) visible ASCII characters")
    }
    return id
  }

  /// A form of another origin can't send these types without asking first.
  private static func check(_ request: HTTPRequest, type: String) throws(CollectorRefusal) {
    guard request.header("content-type")?.split(separator: ";").first.map(String.init) == type else {
      throw CollectorRefusal(415, "send this as \(type)")
    }
  }

  private static func fields(_ request: PageRequest, type: String) throws(CollectorRefusal) -> JSONValue {
    try check(request.http, type: type)
    return try PageAPI.object(request)
  }

  private static func condition(_ request: HTTPRequest) throws(CollectorRefusal) -> ChangeCondition {
    switch (request.header("if-match"), request.header("if-none-match")) {
    case (nil, nil): return .always
    case (let tags?, nil): return .matches(Self.tags(tags))
    case (nil, "*"?): return .isNew
    case (nil, _?), (_?, _?):
      throw CollectorRefusal(400, "give If-Match with tags or *, or If-None-Match: *")
    }
  }

  /// nil for `*`.
  private static func tags(_ header: String) -> [String]? {
    guard header != "*" else { return nil }
    return header.split(separator: ",").map { String($0.drop { $0 == " " }.reversed().drop { $0 == " " }.reversed()) }
  }
}

extension RecordChange.Action {
  var name: String {
    switch self {
    case .put: "put"
    case .patch: "patch"
    case .delete: "delete"
    }
  }
}

extension CollectorRefusal {
  /// Why changes of records were not made.
  init(_ failure: RecordFailure, _ changes: [RecordChange]) {
    switch failure {
    case .store(.unavailable(let cause)): self = .unavailable(cause)
    case .store(.rejected(let cause)): self.init(422, "the store can't hold this: \(cause)")
    case .refused(let refusal, let index):
      let id = changes[index].id.text
      switch refusal {
      case .condition: self.init(412, "\(id): is not as If-Match or If-None-Match says; read it again")
      case .unknownNumber:
        self.init(
          404, "\(id): ids of digits are the collector's, for records of devices, and no record here has this one")
      case .tooLarge(let bytes):
        self.init(413, "\(id): has \(bytes) bytes of fields, must have at most \(RecordRequest.fieldsBytesMax)")
      case .tags: self.init(422, "\(id): tags must be \(DeviceTags.rule)")
      case .isOfFleet: self.init(409, "the table has records of the fleet; leave out the device")
      case .isOfDevices: self.init(409, "devices have records of their own in this table; name the device")
      }
      self.place = index
    }
  }
}

// Finding records.
extension RecordAPI {
  /// `GET /records`: a page of one table or of one device, by ascending server id.
  func find(_ request: PageRequest) async throws(CollectorRefusal) -> HTTPResponse {
    var filter = RecordFilter(scope: request.scope)
    let given = { (name: String) in request.http.parameter(name) }
    filter.device = given("device")
    filter.namespace = given("namespace").flatMap { NamespaceName($0) }
    filter.table = given("table").flatMap { RecordTableName($0) }
    guard filter.namespace != nil || (filter.device != nil && given("namespace") == nil) else {
      throw CollectorRefusal(400, "namespace must be the name of a namespace; leave it out only with a device")
    }
    guard filter.table != nil || (filter.device != nil && given("table") == nil) else {
      throw CollectorRefusal(400, "table must be the name of a table of records; leave it out only with a device")
    }
    filter.id = given("id").flatMap { RecordID($0) }
    guard filter.id != nil || given("id") == nil else { throw CollectorRefusal(400, "id must be that of a record") }
    return try await find(request, &filter)
  }

  private func find(
    _ request: PageRequest, _ filter: inout RecordFilter
  ) async throws(CollectorRefusal) -> HTTPResponse {
    filter.after = try request.number("after", in: 0...Int64.max) ?? filter.after
    filter.limit = try request.number("limit", in: 1...RecordFilter.limitMax) ?? filter.limit
    return try await find(filter, where: try MetaCondition.all("field", request.http))
  }

  /// - Parameter conditions: of the fields. Rows are read until there are enough, or for `ReportScan.pageBudget`; `next` is where to
  ///   go on.
  private func find(
    _ wanted: RecordFilter, where conditions: [MetaCondition]
  ) async throws(CollectorRefusal) -> HTTPResponse {
    let (store, time, started) = (api.collector.store, api.collector.time, api.collector.time.uptime)
    let read = { (filter: RecordFilter) async throws(CollectorRefusal) in
      try await api.ask { () throws(StoreFailure) in try await store.records(filter) }
    }
    if conditions.isEmpty {
      let page = try await read(wanted)
      return Self.response(page, next: wanted.next(behind: page))
    }
    let questions = conditions.map { FieldQuestion($0) }
    var (filter, found) = (wanted, [CollectedRecord]())
    filter.limit = RecordFilter.limitMax
    repeat {
      let page = try await read(filter)
      guard let last = page.last else { return Self.response(found, next: nil) }
      for record in page where questions.allSatisfy({ $0.of(record.fields) }) {
        found.append(record)
        if found.count == wanted.limit { return Self.response(found, next: record.number) }
      }
      filter.after = last.number
    } while time.uptime - started < ReportScan.pageBudget
    return Self.response(found, next: filter.after)
  }

  /// A page as JSON. - Parameter next: the `after` of the following one; nil: there is no further one.
  private static func response(_ page: [CollectedRecord], next: Int64?) -> HTTPResponse {
    let records = page.map(\.fetchedText).joined(separator: [UInt8(ascii: ",")])
    let end = "],\"next\":\(next.map { String($0) } ?? "null")}"
    return .json(Array(#"{"records":["#.utf8) + records + Array(end.utf8))
  }
}

extension RecordFilter {
  /// Where the page behind this one begins; nil: it is the last one.
  fileprivate func next(behind page: [CollectedRecord]) -> Int64? {
    let isLast = page.count < limit && page.reduce(0) { $0 + $1.fields.count } < Self.bytesMax
    return isLast ? nil : page.last?.number
  }
}
