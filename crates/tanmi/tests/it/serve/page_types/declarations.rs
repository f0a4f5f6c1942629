//! Reads `api-types.d.ts`, compares JSON values with its types, and compares its types with JSON schemas.
//!
//! Understands the part of TypeScript that the file uses and panics at anything else.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

#[derive(Clone, Debug)]
pub enum Type {
    Text,
    Number,
    Flag,
    Null,
    /// Any value.
    Unknown,
    Literal(String),
    /// The name of another declaration.
    Name(String),
    List(Box<Type>),
    Union(Vec<Type>),
    Object(Vec<Field>),
    /// An object with any keys.
    Map(Box<Type>),
}

#[derive(Clone, Debug)]
pub struct Field {
    /// The declaration and the name: `NodeBrief.title`.
    pub id: String,
    pub name: String,
    pub is_optional: bool,
    pub field_type: Type,
}

/// The declarations of a file by name.
pub struct Declarations(BTreeMap<String, Type>);

impl Declarations {
    pub fn parse(text: &str) -> Declarations {
        let mut parser = Parser { tokens: tokens(text), at: 0, types: BTreeMap::new() };
        while parser.peek().is_some() {
            parser.declaration();
        }
        Declarations(parser.types)
    }

    pub fn named(&self, name: &str) -> &Type {
        self.0.get(name).unwrap_or_else(|| panic!("{name} is not declared"))
    }

    /// Follows the names of other declarations.
    pub fn resolve<'a>(&'a self, declared: &'a Type) -> &'a Type {
        match declared {
            Type::Name(name) => self.resolve(self.named(name)),
            other => other,
        }
    }

    /// Returns the fields of an object type.
    pub fn fields<'a>(&'a self, declared: &'a Type) -> &'a [Field] {
        match self.resolve(declared) {
            Type::Object(fields) => fields,
            other => panic!("not an object type: {other:?}"),
        }
    }

    /// Compares a value with a type. Returns the ids of the fields that the value has, or the first difference.
    pub fn compare(&self, value: &Value, declared: &Type, at: &str) -> Result<BTreeSet<String>, String> {
        let fits = match (self.resolve(declared), value) {
            (Type::Union(types), _) => return self.compare_union(value, types, at),
            (Type::Object(fields), Value::Object(_)) => return self.compare_object(value, fields, at),
            (Type::List(item), Value::Array(items)) => {
                let found = items.iter().enumerate().map(|(i, value)| (format!("{at}[{i}]"), value));
                return self.compare_all(found, item);
            }
            (Type::Map(item), Value::Object(entries)) => {
                let found = entries.iter().map(|(key, value)| (format!("{at}.{key}"), value));
                return self.compare_all(found, item);
            }
            (Type::Literal(word), value) => value == word,
            (Type::Text, value) => value.is_string(),
            (Type::Number, value) => value.is_number(),
            (Type::Flag, value) => value.is_boolean(),
            (Type::Null, value) => value.is_null(),
            (Type::Unknown, _) => true,
            _ => false,
        };
        if fits { Ok(BTreeSet::new()) } else { Err(format!("{at}: {value} is not {declared:?}")) }
    }

    fn compare_all<'a>(
        &self,
        values: impl Iterator<Item = (String, &'a Value)>,
        declared: &Type,
    ) -> Result<BTreeSet<String>, String> {
        let mut seen = BTreeSet::new();
        for (at, value) in values {
            seen.extend(self.compare(value, declared, &at)?);
        }
        Ok(seen)
    }

    fn compare_union(&self, value: &Value, types: &[Type], at: &str) -> Result<BTreeSet<String>, String> {
        let mut differences = Vec::new();
        for declared in types {
            match self.compare(value, declared, at) {
                Ok(seen) => return Ok(seen),
                Err(difference) => differences.push(difference),
            }
        }
        Err(differences.join("\n  or "))
    }

    fn compare_object(&self, value: &Value, fields: &[Field], at: &str) -> Result<BTreeSet<String>, String> {
        let mut seen = BTreeSet::new();
        for field in fields {
            match value.get(&field.name) {
                None if field.is_optional => {}
                None => return Err(format!("{at}: {} is declared but not sent: {value}", field.id)),
                Some(found) => {
                    let at = format!("{at}.{}", field.name);
                    seen.extend(self.compare(found, &field.field_type, &at)?);
                    if !found.is_null() {
                        seen.insert(field.id.clone());
                    }
                }
            }
        }
        let names: BTreeSet<&str> = fields.iter().map(|field| field.name.as_str()).collect();
        match value.as_object().into_iter().flatten().find(|(name, _)| !names.contains(name.as_str())) {
            Some((name, _)) => Err(format!("{at}: {name} is sent but not declared: {value}")),
            None => Ok(seen),
        }
    }

    /// Adds the ids of all fields of a type and of the types it refers to.
    pub fn collect_fields(&self, declared: &Type, ids: &mut BTreeSet<String>) {
        match self.resolve(declared) {
            Type::List(item) | Type::Map(item) => self.collect_fields(item, ids),
            Type::Union(types) => {
                // A union may contain itself through a list.
                let lists = |declared: &&Type| !matches!(declared, Type::List(_));
                types.iter().filter(lists).for_each(|declared| self.collect_fields(declared, ids));
            }
            Type::Object(fields) => {
                for field in fields {
                    if ids.insert(field.id.clone()) {
                        self.collect_fields(&field.field_type, ids);
                    }
                }
            }
            _ => {}
        }
    }

    /// Compares the type of a value that the page sends with the schema of the description. In a query, a list is sent
    /// as text.
    pub fn compare_schema(&self, declared: &Type, schema: &Value, at: &str) -> Result<(), String> {
        let kind = schema["type"].as_str().unwrap_or("string");
        let fits = match self.resolve(declared) {
            Type::Text => matches!(kind, "string" | "array"),
            Type::Number => matches!(kind, "integer" | "number"),
            Type::Flag => kind == "boolean",
            Type::List(item) if kind == "array" => return self.compare_schema(item, &schema["items"], at),
            Type::Object(fields) if kind == "object" => return self.compare_fields(fields, schema, at),
            Type::Union(types) => {
                let words: BTreeSet<Option<&str>> = types.iter().map(Type::literal).collect();
                schema["enum"]
                    .as_array()
                    .is_some_and(|known| words == known.iter().map(Value::as_str).collect())
            }
            _ => false,
        };
        if fits { Ok(()) } else { Err(format!("{at}: {declared:?} is not {schema}")) }
    }

    /// Compares the fields of an object that the page sends with the properties of a schema.
    pub fn compare_fields(&self, fields: &[Field], schema: &Value, at: &str) -> Result<(), String> {
        for field in fields {
            let property = schema["properties"].get(&field.name);
            let property = property.ok_or_else(|| format!("{at}: the API has no {}", field.name))?;
            self.compare_schema(&field.field_type, property, &format!("{at}.{}", field.name))?;
        }
        for required in schema["required"].as_array().into_iter().flatten() {
            if !fields.iter().any(|field| *required == field.name && !field.is_optional) {
                return Err(format!("{at}: the API requires {required}"));
            }
        }
        Ok(())
    }
}

impl Type {
    fn literal(&self) -> Option<&str> {
        match self {
            Type::Literal(word) => Some(word),
            _ => None,
        }
    }
}

/// Returns the names, quoted texts and signs of a text, without comments.
fn tokens(text: &str) -> Vec<String> {
    let (mut tokens, mut rest) = (Vec::new(), text.trim_start());
    while let Some(first) = rest.chars().next() {
        let end = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            rest.find("*/").expect("a comment ends") + 2
        } else if first == '\'' {
            rest[1..].find('\'').expect("a literal ends") + 2
        } else {
            let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
            end.max(first.len_utf8())
        };
        if first != '/' {
            tokens.push(rest[..end].to_owned());
        }
        rest = rest[end..].trim_start();
    }
    tokens
}

struct Parser {
    tokens: Vec<String>,
    at: usize,
    types: BTreeMap<String, Type>,
}

impl Parser {
    fn peek(&self) -> Option<&str> {
        self.tokens.get(self.at).map(String::as_str)
    }

    fn next(&mut self) -> String {
        self.at += 1;
        self.tokens.get(self.at - 1).expect("the file ends in the middle of a declaration").clone()
    }

    /// Skips the token if it is the next one, and returns whether it was.
    fn skip(&mut self, token: &str) -> bool {
        let is_next = self.peek() == Some(token);
        self.at += usize::from(is_next);
        is_next
    }

    fn expect(&mut self, token: &str) {
        let next = self.next();
        assert_eq!(next, token, "after {:?}", &self.tokens[self.at.saturating_sub(8)..self.at]);
    }

    fn declaration(&mut self) {
        self.expect("export");
        let (keyword, name) = (self.next(), self.next());
        let declared = match keyword.as_str() {
            "interface" => {
                let parent = self.skip("extends").then(|| self.next());
                let inherited = parent.map(|parent| match self.types.get(&parent) {
                    Some(Type::Object(fields)) => fields.clone(),
                    _ => panic!("{parent} must be declared before {name}"),
                });
                self.expect("{");
                let mut fields = inherited.unwrap_or_default();
                fields.extend(self.fields(&name));
                Type::Object(fields)
            }
            "type" => {
                self.expect("=");
                let declared = self.union(&name);
                self.expect(";");
                declared
            }
            other => panic!("{other} {name} is not understood"),
        };
        assert!(self.types.insert(name.clone(), declared).is_none(), "{name} is declared twice");
    }

    /// Parses fields up to the closing brace.
    fn fields(&mut self, owner: &str) -> Vec<Field> {
        let mut fields = Vec::new();
        while !self.skip("}") {
            let name = self.next().trim_matches('\'').to_owned();
            let is_optional = self.skip("?");
            self.expect(":");
            let id = format!("{owner}.{name}");
            let field_type = self.union(&id);
            fields.push(Field { id, name, is_optional, field_type });
            if !self.skip(";") {
                self.expect("}");
                break;
            }
        }
        fields
    }

    fn union(&mut self, owner: &str) -> Type {
        let mut types = vec![self.list(owner)];
        while self.skip("|") {
            types.push(self.list(owner));
        }
        if types.len() == 1 { types.swap_remove(0) } else { Type::Union(types) }
    }

    fn list(&mut self, owner: &str) -> Type {
        let mut parsed = self.single(owner);
        while self.skip("[") {
            self.expect("]");
            parsed = Type::List(Box::new(parsed));
        }
        parsed
    }

    fn single(&mut self, owner: &str) -> Type {
        match self.next().as_str() {
            "string" => Type::Text,
            "number" => Type::Number,
            "boolean" => Type::Flag,
            "null" => Type::Null,
            "unknown" => Type::Unknown,
            "{" if self.skip("[") => {
                self.next();
                for token in [":", "string", "]", ":"] {
                    self.expect(token);
                }
                let item = self.union(owner);
                self.expect("}");
                Type::Map(Box::new(item))
            }
            "{" => Type::Object(self.fields(owner)),
            literal if literal.starts_with('\'') => Type::Literal(literal.trim_matches('\'').to_owned()),
            name if name.starts_with(|c: char| c.is_ascii_uppercase()) => Type::Name(name.to_owned()),
            other => panic!("{other} is not understood"),
        }
    }
}
