public import PrismProtocol

// Records: state of which only the latest value matters, and which the server gets (docs/records.md). Each request may be
// sent twice, since it leads to the same record: after a restart of the daemon the client asks again.
extension PrismClient {
  /// Sets all fields of a record; what changes nothing costs nothing.
  /// - Parameter fields: an object of at most 10,240 bytes.
  /// - Parameter condition: of the record before; if it does not hold, `version_mismatch` is thrown.
  /// - Returns: the record's version. - Throws: also `refused`.
  @discardableResult
  public func put(
    _ fields: JSONValue, as id: RecordID, in table: RecordTableName, of namespace: NamespaceName = .prism,
    if condition: VersionCondition? = nil
  ) throws(ClientError) -> Int {
    try ask(.put, namespace, table, members(id, condition) + [.init("fields", fields)])["version"]?.int ?? 0
  }

  /// Changes fields of a record by a JSON Merge Patch (RFC 7396): null removes a field. An absent record is made.
  /// - Returns: the record's version. - Throws: also `refused`.
  @discardableResult
  public func patch(
    _ fields: JSONValue, of id: RecordID, in table: RecordTableName, of namespace: NamespaceName = .prism,
    if condition: VersionCondition? = nil
  ) throws(ClientError) -> Int {
    try ask(.patch, namespace, table, members(id, condition) + [.init("fields", fields)])["version"]?.int ?? 0
  }

  /// Deletes a record, here and at the server. An absent one is no fault. - Throws: also `refused`.
  public func delete(
    _ id: RecordID, in table: RecordTableName, of namespace: NamespaceName = .prism,
    if condition: VersionCondition? = nil
  ) throws(ClientError) {
    _ = try ask(.delete, namespace, table, members(id, condition))
  }

  private func members(_ id: RecordID, _ condition: VersionCondition?) -> [JSONValue.Member] {
    [.init("id", .string(id.text))] + (condition.map { [.init("ifVersion", $0.json)] } ?? [])
  }

  /// Reads a record by its own or the server's id: an object with `id`, `fields`, `version`, `changedTime`, `state`.
  /// - Returns: nil if there is no such record. - Throws: also `refused`.
  public func record(
    _ id: RecordID, in table: RecordTableName, of namespace: NamespaceName = .prism
  ) throws(ClientError) -> JSONValue? {
    let record = try ask(.get, namespace, table, [.init("id", .string(id.text))])["record"]
    return record?.isNull == false ? record : nil
  }

  /// Reads all records of a table by ascending id, page by page. Changes made meanwhile may be among them.
  /// - Throws: also `refused`.
  public func records(
    in table: RecordTableName, of namespace: NamespaceName = .prism
  ) throws(ClientError) -> [JSONValue] {
    var (records, isMore): ([JSONValue], Bool) = ([], true)
    while isMore {
      let last = records.last?["id"]?.string.flatMap { RecordID($0) }
      let page = try page(in: table, of: namespace, after: last)
      records += page["records"]?.array ?? []
      isMore = page["more"]?.bool ?? false
    }
    return records
  }

  /// Reads a page of a table by ascending id: an object with `records`, `generation` and `more`.
  /// - Parameter after: the last id of the page before. - Parameter limit: 1 to 1,000. - Throws: also `refused`.
  public func page(
    in table: RecordTableName, of namespace: NamespaceName = .prism, after: RecordID? = nil,
    limit: Int = RecordRequest.listMax
  ) throws(ClientError) -> JSONValue {
    let last = after.map { [JSONValue.Member("after", .string($0.text))] } ?? []
    return try ask(.list, namespace, table, last + [.init("limit", .int(limit))])
  }

  private func ask(
    _ verb: RecordVerb, _ namespace: NamespaceName, _ table: RecordTableName, _ members: [JSONValue.Member]
  ) throws(ClientError) -> JSONValue {
    let place: [JSONValue.Member] = [
      .init("namespace", .string(namespace.text)), .init("table", .string(table.text)),
    ]
    return try ask(.object([.init(verb.rawValue, .object(place + members))]))
  }
}
