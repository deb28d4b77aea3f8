//! Stop words by language.
//!
//! The lists from Danish to Swedish are those of tantivy, which come from Snowball and Lucene. The
//! other lists are short: the most common articles, pronouns and prepositions.

use std::collections::HashSet;
use std::mem::swap;
use std::sync::Arc;

use tantivy::tokenizer::{Language, StopWordFilter, Token, TokenFilter, TokenStream, Tokenizer};

/// A set of stop words.
#[derive(Clone)]
pub(crate) enum StopWords {
    Own(Arc<HashSet<String>>),
    Known(StopWordProbe),
}

impl StopWords {
    pub(crate) fn from_words(words: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self::Own(Arc::new(words.into_iter().map(Into::into).collect()))
    }

    /// Returns the list of a language, by its name in `stopwordsList`.
    pub(crate) fn named(language: &str) -> Option<Self> {
        let known = match language {
            "danish" => Language::Danish,
            "dutch" => Language::Dutch,
            "english" => Language::English,
            "finnish" => Language::Finnish,
            "french" => Language::French,
            "german" => Language::German,
            "hungarian" => Language::Hungarian,
            "italian" => Language::Italian,
            "norwegian" => Language::Norwegian,
            "portuguese" | "brazilian" => Language::Portuguese,
            "russian" => Language::Russian,
            "spanish" => Language::Spanish,
            "swedish" => Language::Swedish,
            _ => {
                let (_, words) = SHORT.iter().find(|(name, _)| *name == language)?;
                return Some(Self::from_words(words.split(' ')));
            }
        };
        StopWordFilter::new(known).map(|filter| Self::Known(StopWordProbe::new(filter)))
    }

    /// Whether the set contains the text. `&mut` lets the text pass through tantivy's filter without a
    /// copy. The text is unchanged afterwards.
    pub(crate) fn contains(&mut self, text: &mut String) -> bool {
        match self {
            Self::Own(words) => words.contains(text.as_str()),
            Self::Known(known) => known.contains(text),
        }
    }
}

/// tantivy's lists can only be queried by a token stream through its filter. This keeps such a stream.
pub(crate) struct StopWordProbe {
    filter: StopWordFilter,
    probe: Probe,
}

type Probe = <<StopWordFilter as TokenFilter>::Tokenizer<ProbeTokenizer> as Tokenizer>::TokenStream<'static>;

impl StopWordProbe {
    fn new(filter: StopWordFilter) -> Self {
        let probe = filter.clone().transform(ProbeTokenizer).token_stream("");
        Self { filter, probe }
    }

    fn contains(&mut self, text: &mut String) -> bool {
        swap(&mut self.probe.token_mut().text, text);
        let kept = self.probe.advance();
        swap(&mut self.probe.token_mut().text, text);
        !kept
    }
}

impl Clone for StopWordProbe {
    fn clone(&self) -> Self {
        Self::new(self.filter.clone())
    }
}

#[derive(Clone)]
struct ProbeTokenizer;

/// A stream of one token. It returns the token once after each write access to it.
struct ProbeTokenStream {
    token: Token,
    filled: bool,
}

impl Tokenizer for ProbeTokenizer {
    type TokenStream<'a> = ProbeTokenStream;

    fn token_stream<'a>(&'a mut self, _: &'a str) -> ProbeTokenStream {
        ProbeTokenStream { token: Token::default(), filled: false }
    }
}

impl TokenStream for ProbeTokenStream {
    fn advance(&mut self) -> bool {
        std::mem::take(&mut self.filled)
    }

    fn token(&self) -> &Token {
        &self.token
    }

    fn token_mut(&mut self) -> &mut Token {
        self.filled = true;
        &mut self.token
    }
}

const SHORT: [(&str, &str); 18] = [
    (
        "arabic",
        "من في على و فى او أو ثم عن مع أن ان إلى الى هذا هذه ذلك التي الذي هو هي كان كانت لا ما لم قد بين كل بعد قبل حتى إن إذا عند كما هناك",
    ),
    (
        "armenian",
        "այդ այլ այն այս դու դուք եմ են ենք ես եք է էի էին էինք էիր էիք էր ըստ թ ի ին իսկ իր կամ համար հետ հետո մենք մեջ մի ն նա նաև նրա նրանք որ որը որոնք որպես ու ում պիտի վրա և",
    ),
    (
        "basque",
        "al anitz arabera asko baina bat batean batek bati bera beraiek berau berauek bere berori bi da dago dira ditu du dute edo egin ere eta eurak ez gainera gu guk hau hauek hemen hori horiek hura ni nik zen zer zu zuek",
    ),
    (
        "bulgarian",
        "а без бе беше би бил била били било бъде в ви все във го да до доста е един едно за и из или им има как като ли ме между ми му на над не него нея ни но о от по под при с са само се си след сме съм със то това той тя тях че ще я",
    ),
    (
        "catalan",
        "a al als amb aquest aquesta aquests com d de del dels des el els en entre és era es ha han hi i l la les li lo més molt ni no o on però per què que qui s se sense ser seu seva si són sobre també tan un una uns unes va",
    ),
    (
        "czech",
        "a aby ale ani asi až být bude by byl byla byli bylo co do ho i já jak jako je jeho jej její jen ještě již jsem jsme jsou jste k kde který která které kteří ku ma má me mezi mi na nad nebo není než o od on ona oni po pod podle pro proto před při s se si ta tak také tato ten to tu ty u už v ve z za ze že",
    ),
    (
        "galician",
        "a á ao aos as ás co coa como con da das de del do dos e é el ela en entre era esta este foi ha hai lle máis me mesmo moi na nas nin no non nos o os ou para pero pola polo por que se sen ser seu súa tamén un unha unhas uns",
    ),
    (
        "greek",
        "ο η το οι τα του τησ των τον την και κι κ ειμαι εισαι ειναι ειμαστε ειστε στο στον στη στην μα αλλα απο για προσ με σε ωσ παρα αντι κατα μετα θα να δε δεν μη μην επι ενω εαν αν τοτε που πωσ ποιοσ ποια ποιο αυτοσ αυτη αυτο αυτοι εκεινοσ οπωσ ομωσ ισωσ οσο οτι",
    ),
    (
        "hindi",
        "अत अपना अपनी अपने आदि इस इसका इसकी इसके उन उनका उनकी उनके उस एक और कर करना का कि की के को कोई गया जब जा जो तक था थी थे दिया ने पर बहुत भी में यह या यहा ये रहा रहे लिए ले वह वे से हि ही है हैं हो होता",
    ),
    (
        "indonesian",
        "ada adalah agar akan aku anda antara apa atas atau bagi bahwa banyak baru bisa bukan dalam dan dari dengan di dia hanya harus ia ini itu jika juga kami kamu karena ke kepada kita lagi lain lebih maka masih mereka oleh pada para saat sama sampai saya sebagai sebuah secara sedang seperti serta setelah sudah telah tentang tidak untuk yaitu yang",
    ),
    (
        "irish",
        "a ach ag agus an aon ar arna as ba beirt bhúr caoga ceathair chuig chun cois céad cúig de deich do dtí dá dár faoi faoina fiche gach gan go gur i iad idir in ina is le leis lena mar mo mé na nach naoi ní nó nócha ocht ó os roimh sa san sé seacht sin siad sibh sinn sna tar thar thú tú trí um uair",
    ),
    (
        "latvian",
        "aiz ap apakš ar arī bet bez bija bijis biju būs būt caur diemžēl es esam esat esi esmu gan gar iekš ir ja jau jo jūs kā ka kas ko ka kur ne nebija nē no otrpus pa par pār pāri pēc pie pirms pret priekš sanē starp šis šī šo tā tad tas te tik tu un uz vai var viņa viņi viņš virs",
    ),
    (
        "persian",
        "و در به از كه که اين این را با است براي برای ان آن يك یک تا هم شد شود بر خود ما من او نيز هر يا یا اما بود هاي های مي می شده كرد کرد دو ديگر پس اگر همه بي بین",
    ),
    (
        "polish",
        "a aby ale ani bardzo bez bo by był była było były być co czy dla do gdy gdzie go i ich im ja jak jako jego jej jest jeszcze już kiedy który która które ku lub ma mi mnie może na nad nie nich niż o od on ona one oni oraz po pod przez przy są się ta tak także tam te tego tej ten to tu tylko ty u w we więc z za ze że",
    ),
    (
        "romanian",
        "a acea aceasta această acest aceste acești ai al ale am ar are as au ca că care ce cel cea cei cele cu cum da dar de din după e ea ei el ele era este eu fără fi fie fost i iar în îi îl își la le lor lui mai mea mi mult nu o ori pe pentru pot prin s sa să sale sau se și spre sub sunt tot un una unde unei unui va vor",
    ),
    (
        "sorani",
        "و کە ی ە بە لە بۆ ئەم ئەو ئەوە ئەوان من تۆ ئێمە ئێوە هەر هەموو یان دوای پێش لەگەڵ لەسەر لەناو وەک دەکات بوو نە تا بێ",
    ),
    (
        "thai",
        "ไว้ ไม่ ไป ได้ ให้ ใน โดย แห่ง แล้ว และ แรก แบบ แต่ เอง เห็น เลย เริ่ม เรา เมื่อ เพื่อ เพราะ เป็น เปิด เนื่องจาก เดียวกัน เดียว เช่น เฉพาะ เข้า ถ้า ถูก ถึง ต่าง ตาม ตั้งแต่ ด้วย ซึ่ง ช่วง จึง จาก จะ คือ ความ ของ ขณะ กับ การ ที่ มี ว่า อยู่ นี้ นั้น",
    ),
    (
        "turkish",
        "acaba ama aslında az bazı belki ben biri birkaç birşey biz bu çok çünkü da daha de defa diye eğer en gibi hem hep hepsi her hiç için ile ise kez ki kim mı mi mu mü nasıl ne neden nerde nerede nereye niçin niye o sanki şey siz şu tüm ve veya ya yani",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stop_word_lists_are_found_by_name() {
        for (language, word, other) in [
            ("english", "the", "fox"),
            ("german", "und", "fuchs"),
            ("french", "les", "chat"),
            ("polish", "się", "kot"),
            ("turkish", "ve", "kedi"),
            ("brazilian", "não", "gato"),
            ("greek", "και", "γατα"),
            ("thai", "และ", "แมว"),
        ] {
            let mut words = StopWords::named(language).unwrap().clone();
            for _ in 0..2 {
                let mut text = word.to_owned();
                assert!(words.contains(&mut text), "{word}");
                assert_eq!(text, word);
                assert!(!words.contains(&mut other.to_owned()), "{other}");
            }
        }
        assert!(StopWords::named("klingon").is_none());
    }
}
