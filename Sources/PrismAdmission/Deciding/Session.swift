public import PrismBase
public import PrismProtocol

/// The state that one connection's reports are judged by: the rules in force, the sender, and the greeting.
public struct Session: Sendable {
  /// The rules in force.
  public private(set) var rules: AdmissionRules
  /// The sender.
  public let peer: ReportingPeer
  /// The last greeting.
  public private(set) var greeting: Greeting
  /// Prepared once, until the greeting or the rules change.
  public private(set) var context: CommonContext
  /// The same, taken apart, for a meta that collides with it.
  private(set) var commonMembers: [CommonMember]
  /// The app and the version that it greeted with; nil without a version.
  private(set) var app: AppVersion?
  /// The keys that a meta may collide with.
  private(set) var reserved: ReservedKeys
  private var host: HostFacts
  private let sessionID: String
  /// Common information of the input itself.
  private let members: [CommonMember]

  /// About the bytes that it holds in memory: the common information as text and taken apart.
  public var memoryBytes: Int { 4 * context.members.count }

  /// The namespace of the report before this one: most reports of a connection are of one namespace and few types.
  private var recent: (namespace: AdmissionRules.Namespace, isAllowed: Bool)?
  private var recentType = 0

  /// - Parameter sessionID: `APP_SESSION_ID` of a client that gives no id.
  /// - Parameter greeting: what the app gives beside its reports.
  /// - Parameter members: further common information of the input.
  /// - Parameter reduces: its reports are numbers that the input counted together.
  public init(
    rules: AdmissionRules, host: HostFacts, peer: ReportingPeer, sessionID: String, greeting: Greeting = Greeting(),
    members: [CommonMember] = [], reduces: Bool = false
  ) {
    (self.rules, self.host, self.peer, self.sessionID) = (rules, host, peer, sessionID)
    (self.greeting, self.members, reserved, commonMembers) = (greeting, members, rules.reserved, [])
    context = CommonContext(members: [], reduces: reduces)
    prepare()
  }

  /// Judges reports by `rules` from now on.
  public mutating func take(_ rules: AdmissionRules) {
    guard rules !== self.rules else { return }
    let contextIsSame = rules.configured == self.rules.configured && rules.deviceID == self.rules.deviceID
    self.rules = rules
    recent = nil
    if contextIsSame { prepareKeys() } else { prepare() }
  }

  /// The reports from now on say that the clock is set so.
  public mutating func take(_ clock: ClockSetting?) {
    guard clock != host.clock else { return }
    host.clock = clock
    prepare()
  }

  /// A greeting replaces all that the one before it set.
  public mutating func greet(_ object: Span<UInt8>) throws(Refusal) {
    greeting = try Greeting(object, configured: rules.configured)
    prepare()
  }

  /// The program after a greeting; nil: it has not greeted since the last call.
  mutating func takeProgram() -> ProgramSession?? {
    guard greeting.isNew else { return nil }
    greeting.isNew = false
    return .some(program)
  }

  private mutating func prepare() {
    var host = host
    if let deviceID = rules.deviceID { host.deviceID = deviceID }
    commonMembers = CommonInformation.members(
      host: host, peer: peer, configured: rules.configured, greeted: greeting.app, sessionID: sessionID)
    let own = Set(members.map(\.key))
    if !own.isEmpty { commonMembers = commonMembers.filter { !own.contains($0.key) } + members }
    context = CommonContext(members: CommonInformation.text(commonMembers), reduces: context.reduces)
    app = greeting.app["APP_VERSION"].map {
      AppVersion(name: greeting.app["APP_NAME"] ?? peer.processName ?? "", version: $0)
    }
    prepareKeys()
  }

  private mutating func prepareKeys() {
    reserved = members.isEmpty ? rules.reserved : ReservedKeys(rules.reserved.keys.union(members.map(\.key)))
  }

  /// Steps 1 and 2 of admission. - Throws: `forbidden`, `unknown_namespace`.
  mutating func namespace(_ name: ScannedString?, in line: Span<UInt8>) throws(Refusal) -> AdmissionRules.Namespace {
    if let recent, isRecent(recent.namespace, name, line) {
      guard recent.isAllowed else { throw forbidden(recent.namespace) }
      return recent.namespace
    }
    let text = name?.string(in: line) ?? NamespaceName.prism.text
    guard let namespace = rules.namespace(text) else { throw rules.files.unknown(text) }
    let isAllowed = namespace.allows(peer)
    (recent, recentType) = ((namespace, isAllowed), 0)
    guard isAllowed else { throw forbidden(namespace) }
    return namespace
  }

  mutating func namespace(named text: String) throws(Refusal) -> AdmissionRules.Namespace {
    let name = Array(text.utf8)
    return try namespace(ScannedString(range: 0..<name.count, hasEscapes: false), in: name.span)
  }

  private func isRecent(_ recent: AdmissionRules.Namespace, _ name: ScannedString?, _ line: Span<UInt8>) -> Bool {
    guard let name else { return !recent.name.isBusiness }
    return name.equals(recent.nameBytes, in: line)
  }

  private func forbidden(_ namespace: AdmissionRules.Namespace) -> Refusal {
    let user = peer.userID == nil ? "the user of the sender is not known, and neither" : "neither this user, nor"
    return Refusal(.forbidden, "\(user) a group of it, nor its unit is under `allow` of \(namespace.name)")
  }

  /// Step 4 of admission. - Throws: `unknown_type`.
  mutating func type(
    _ name: ScannedString, of namespace: AdmissionRules.Namespace, in line: Span<UInt8>
  ) throws(Refusal) -> Int {
    if namespace.isName(name, of: recentType, in: line) { return recentType }
    let text = name.string(in: line)
    if !peer.isDaemon, ReportType.ofDaemon.contains(text) {
      throw Refusal(.forbidden, "reports of the type \(text) are made by the daemon alone")
    }
    guard let index = namespace.index(ofType: text, from: peer.accountID) else {
      throw namespace.unknownType(text, from: peer.accountID)
    }
    recentType = index
    return index
  }
}
