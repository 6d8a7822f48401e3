public import PrismProtocol

/// The tables of records as of the last commit.
public struct RecordReading: Sendable {
  private let names: Names
  private let records: RecordsState

  init(_ state: StoreState) { (names, records) = (state.names, state.records) }

  /// The tables of a namespace that ever held a record, by name.
  public func tables(of namespace: NamespaceName) -> [RecordTableStatus] {
    guard let number = names.number(of: namespace) else { return [] }
    return records.tables(of: number).map {
      let down = records.down[$0.number].map { down in standing(down) }
      return RecordTableStatus(
        name: $0.name, records: $0.records + (down?.rows ?? 0), ledger: $0.ledger, generation: $0.generation,
        down: down, kept: store(of: namespace)?.kept[$0.name] ?? 0)
    }
  }

  /// The server's stores that answered the namespace; nil: no store gave its identity.
  public func store(of namespace: NamespaceName) -> KnownStore? { records.store(of: namespace, names) }

  /// How far a table is in step with the server; nil: it was never asked.
  public func standing(of table: RecordTableName, in namespace: NamespaceName) -> DownStanding? {
    guard let number = names.number(of: namespace).flatMap({ records.number(table, namespace: $0) }) else { return nil }
    return records.down[number].map { standing($0) }
  }

  private func standing(_ down: DownTableRow) -> DownStanding {
    DownStanding(
      after: down.sequence, heldTime: down.heldTime > 0 ? down.heldTime : nil, rows: down.rows,
      keptLocal: down.keptLocal, keptRemote: down.keptRemote)
  }

  /// Whether an operation of this device on the table has no answer yet.
  public func isInFlight(_ table: RecordTableName, in namespace: NamespaceName) -> Bool {
    tables(of: namespace).contains { $0.name == table && $0.ledger[.claimed] > 0 }
  }

  /// How many operations of this device on the table have had their answer.
  public func settled(_ table: RecordTableName, in namespace: NamespaceName) -> Int {
    names.number(of: namespace).flatMap { records.number(table, namespace: $0) }.map { records.settled($0) } ?? 0
  }

  /// Whether a change of the table waits for an operation.
  public func isWaiting(_ table: RecordTableName, in namespace: NamespaceName) -> Bool {
    tables(of: namespace).contains { $0.name == table && $0.ledger[.waiting] > 0 }
  }

  /// Whether a change waits for an operation.
  public func hasWaiting(_ namespace: NamespaceName) -> Bool {
    tables(of: namespace).contains { $0.ledger[.waiting] > 0 }
  }

  /// Whether a change waits, an operation has no answer yet, or records are to be sent again.
  public func hasWork(_ namespace: NamespaceName) -> Bool {
    store(of: namespace)?.isMarking == true
      || tables(of: namespace).contains { $0.ledger.unsent > 0 }
  }

  /// A synchronization that begins now takes the changes up to this number.
  public var bound: Int64 { records.position }

  /// Packets whose operations are claimed, in the order of sending.
  func inFlight(_ namespace: NamespaceName, _ clocks: ClockBook) -> [PacketInFlight] {
    let packets = names.number(of: namespace).flatMap { records.packets[$0] } ?? []
    return packets.map { packet in
      PacketInFlight(
        id: packet.id, itemCount: packet.items,
        claimed: packet.clock.flatMap { clocks.moment(packet.createdTime, of: $0) })
    }
  }
}

/// A record whose last change the server refused; it waits until the record is changed again.
public struct RefusedRecord: Sendable, Equatable {
  /// Its number in the database, by which pages go on.
  public var number: Int64
  /// The namespace and the table of the record.
  public var namespace: NamespaceName, table: RecordTableName
  /// The record, with the server's words.
  public var record: StoredRecord
}
